import { ModuleProblem, Writer } from './bytes.ts'
import type { Reader } from './bytes.ts'
import { bulk, ends, op, operands, valueTypes } from './opcodes.ts'
import type { Bulk, Operand } from './opcodes.ts'

/** How many of each kind the module itself has: an index above is one of ours, and refused. */
export interface Space {
  readonly types: number
  readonly functions: number
  readonly globals: number
  readonly tables: number
  readonly memories: number
  readonly elements: number
  /** `undefined` when the module does not say, and then it may not use them in code. */
  readonly data: number | undefined
}
/** Functions that are added behind those of the module. */
export interface Intrinsics {
  /** Takes a cost (i64). */
  readonly charge: number
  /** Takes a length (i32), charges for it and gives it back. */
  readonly length: number
  /** Takes what growing gave (i32), notes a refusal and gives it back. */
  readonly grown: number
}

const MOST_LOCALS = 50_000
const MOST_DEPTH = 1_000
/** What growing the memory by a page costs: it has to be made. */
const GROW_COST = 1_000
const lengthTaking: ReadonlySet<Bulk> = new Set([
  'memory.init',
  'memory.copy',
  'memory.fill',
  'table.init',
  'table.copy',
  'table.fill',
])

/**
 * The body of a function, written anew with a charge before every stretch of code that runs as a whole: at its beginning, in every loop,
 * behind every branch. A stretch costs one for each of its instructions.
 */
export function meterBody(reader: Reader, space: Space, intrinsics: Intrinsics): Uint8Array {
  const out = new Writer()
  const groups = reader.count(MOST_LOCALS, 'groups of locals')
  out.u32(groups)
  let locals = 0
  for (let group = 0; group < groups; group++) {
    const count = reader.u32()
    locals += count
    if (locals > MOST_LOCALS) throw new ModuleProblem(`more than ${MOST_LOCALS} locals`)
    out.u32(count).byte(valueType(reader))
  }
  let depth = 1
  let cost = 0n
  const stretch = new Writer()
  const flush = (): void => {
    if (cost > 0n) out.byte(op.i64Const).signed(cost).byte(op.call).u32(intrinsics.charge)
    out.raw(stretch.done())
    stretch.clear()
    cost = 0n
  }
  while (depth > 0) {
    const code = reader.byte()
    if (code === op.bulk) {
      cost++
      bulkInstruction(reader, stretch, space, intrinsics)
      continue
    }
    const operand = operands.get(code)
    if (operand === undefined) throw new ModuleProblem(`the instruction 0x${code.toString(16)} is not known`)
    // The ends of stretches cost nothing: an empty one needs no charge.
    if (code !== op.end && code !== op.else) cost += code === op.memoryGrow ? BigInt(GROW_COST) : 1n
    stretch.byte(code)
    writeOperand(operand, reader, stretch, space)
    if (code === op.memoryGrow) stretch.byte(op.call).u32(intrinsics.grown)
    if (code === op.block || code === op.loop || code === op.if) depth++
    else if (code === op.end) depth--
    if (depth > MOST_DEPTH) throw new ModuleProblem(`blocks are nested deeper than ${MOST_DEPTH}`)
    if (ends.has(code)) flush()
  }
  flush()
  if (!reader.done) throw new ModuleProblem('a function goes on behind its end')
  return out.done()
}

function writeOperand(operand: Operand, reader: Reader, out: Writer, space: Space): void {
  switch (operand) {
    case 'none':
      return
    case 'block': {
      const type = reader.s33()
      // Below zero: nothing, or one type of a value.
      if (type < 0n ? type !== -64n && !valueTypes.has(Number(type + 128n)) : type >= BigInt(space.types))
        throw new ModuleProblem('a block has a type that is none')
      out.signed(type)
      return
    }
    case 'label':
    case 'local':
      out.u32(reader.u32())
      return
    case 'branches': {
      const count = reader.count(65_520, 'branches')
      out.u32(count)
      for (let branch = 0; branch <= count; branch++) out.u32(reader.u32())
      return
    }
    case 'function':
      out.u32(index(reader, space.functions, 'function'))
      return
    case 'indirect':
      out.u32(index(reader, space.types, 'type')).u32(index(reader, space.tables, 'table'))
      return
    case 'global':
      out.u32(index(reader, space.globals, 'global'))
      return
    case 'table':
      out.u32(index(reader, space.tables, 'table'))
      return
    case 'access8':
    case 'access16':
    case 'access32':
    case 'access64': {
      const alignment = reader.u32()
      // Higher bits would name another memory.
      if (alignment > { access8: 0, access16: 1, access32: 2, access64: 3 }[operand])
        throw new ModuleProblem('an access to memory has an alignment that is none')
      out.u32(alignment).u32(reader.u32())
      return
    }
    case 'memory':
      zero(reader, 'memory')
      out.byte(0)
      return
    case 'i32':
      out.signed(reader.s32())
      return
    case 'i64':
      out.signed(reader.s64())
      return
    case 'f32':
      out.raw(reader.take(4))
      return
    case 'f64':
      out.raw(reader.take(8))
      return
    case 'select': {
      if (reader.u32() !== 1) throw new ModuleProblem('a choice has one type')
      out.u32(1).byte(valueType(reader))
      return
    }
    case 'heap': {
      if (reader.s33() !== -16n) throw new ModuleProblem('a reference is one to a function')
      out.byte(0x70)
    }
  }
}

function bulkInstruction(reader: Reader, out: Writer, space: Space, intrinsics: Intrinsics): void {
  const code = reader.u32()
  const kind = bulk.get(code)
  if (kind === undefined) throw new ModuleProblem(`the instruction 0xfc ${code} is not known`)
  if (lengthTaking.has(kind) || kind === 'table.grow') out.byte(op.call).u32(intrinsics.length)
  out.byte(op.bulk).u32(code)
  switch (kind) {
    case 'none':
      return
    case 'memory.init':
      out.u32(index(reader, space.data ?? 0, 'data segment'))
      zero(reader, 'memory')
      out.byte(0)
      return
    case 'data.drop':
      out.u32(index(reader, space.data ?? 0, 'data segment'))
      return
    case 'memory.copy':
      zero(reader, 'memory')
      zero(reader, 'memory')
      out.byte(0, 0)
      return
    case 'memory.fill':
      zero(reader, 'memory')
      out.byte(0)
      return
    case 'table.init':
      out.u32(index(reader, space.elements, 'element segment')).u32(index(reader, space.tables, 'table'))
      return
    case 'elem.drop':
      out.u32(index(reader, space.elements, 'element segment'))
      return
    case 'table.copy':
      out.u32(index(reader, space.tables, 'table')).u32(index(reader, space.tables, 'table'))
      return
    case 'table.grow':
    case 'table.size':
    case 'table.fill':
      out.u32(index(reader, space.tables, 'table'))
  }
}

export function valueType(reader: Reader): number {
  const type = reader.byte()
  if (!valueTypes.has(type)) throw new ModuleProblem(`the type 0x${type.toString(16)} is not known`)
  return type
}
export function index(reader: Reader, count: number, what: string): number {
  const value = reader.u32()
  if (value >= count) throw new ModuleProblem(`there is no ${what} ${value}`)
  return value
}
function zero(reader: Reader, what: string): void {
  if (reader.byte() !== 0) throw new ModuleProblem(`there is one ${what} only`)
}

/** A value that is known before anything runs. Names of values of the module are not allowed in it. */
export function constant(reader: Reader, out: Writer, space: Pick<Space, 'functions'>): void {
  const code = reader.byte()
  out.byte(code)
  if (code === op.i32Const) out.signed(reader.s32())
  else if (code === op.i64Const) out.signed(reader.s64())
  else if (code === op.f32Const) out.raw(reader.take(4))
  else if (code === op.f64Const) out.raw(reader.take(8))
  else if (code === op.refFunc) out.u32(index(reader, space.functions, 'function'))
  else if (code === op.refNull) {
    if (reader.s33() !== -16n) throw new ModuleProblem('a reference is one to a function')
    out.byte(0x70)
  } else throw new ModuleProblem('a first value has to be a constant')
  if (reader.byte() !== op.end) throw new ModuleProblem('a first value has to be a constant')
  out.byte(op.end)
}
