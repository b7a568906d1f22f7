import { ModuleProblem, Writer } from './bytes.ts'
import type { Reader } from './bytes.ts'
import { bulk, ends, op, operands, valueTypes } from './opcodes.ts'
import type { Bulk, Operand } from './opcodes.ts'

/** How many of each kind the module itself has: an index above belongs to the meter, and the module is refused. */
export interface Space {
  readonly types: number
  readonly functions: number
  readonly globals: number
  readonly tables: number
  readonly memories: number
  readonly elements: number
  /** `undefined` if the module has no count of data segments: then its code may not use them. */
  readonly data: number | undefined
}
/** Functions that the meter adds after those of the module. */
export interface Intrinsics {
  /** Takes a cost (i64). */
  readonly charge: number
  /** Takes a length (i32), charges for it and returns it. */
  readonly length: number
  /** Takes the result of growing (i32), records a refusal and returns the result. */
  readonly grown: number
}

const MAX_LOCALS = 50_000
const MAX_DEPTH = 1_000
/** The cost of growing the memory: the host allocates the pages. */
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
 * Rewrites the body of a function with a charge before every basic block: at its beginning, in every loop and after
 * every branch. A block costs one for each of its instructions.
 */
export function meterBody(reader: Reader, space: Space, intrinsics: Intrinsics): Uint8Array {
  const out = new Writer()
  const groups = reader.count(MAX_LOCALS, 'groups of locals')
  out.u32(groups)
  let locals = 0
  for (let group = 0; group < groups; group++) {
    const count = reader.u32()
    locals += count
    if (locals > MAX_LOCALS) throw new ModuleProblem(`more than ${MAX_LOCALS} locals`)
    out.u32(count).byte(valueType(reader))
  }
  let depth = 1
  let cost = 0n
  const basicBlock = new Writer()
  const flush = (): void => {
    if (cost > 0n) out.byte(op.i64Const).signed(cost).byte(op.call).u32(intrinsics.charge)
    out.raw(basicBlock.done())
    basicBlock.clear()
    cost = 0n
  }
  while (depth > 0) {
    const code = reader.byte()
    if (code === op.bulk) {
      cost++
      bulkInstruction(reader, basicBlock, space, intrinsics)
      continue
    }
    const operand = operands.get(code)
    if (operand === undefined) throw new ModuleProblem(`the instruction 0x${code.toString(16)} is not known`)
    // `end` and `else` cost nothing, so an empty block needs no charge.
    if (code !== op.end && code !== op.else) cost += code === op.memoryGrow ? BigInt(GROW_COST) : 1n
    basicBlock.byte(code)
    operandWriters[operand](reader, basicBlock, space)
    if (code === op.memoryGrow) basicBlock.byte(op.call).u32(intrinsics.grown)
    if (code === op.block || code === op.loop || code === op.if) depth++
    else if (code === op.end) depth--
    if (depth > MAX_DEPTH) throw new ModuleProblem(`blocks are nested deeper than ${MAX_DEPTH}`)
    if (ends.has(code)) flush()
  }
  flush()
  if (!reader.done) throw new ModuleProblem('a function goes on behind its end')
  return out.done()
}

type OperandWriter = (reader: Reader, out: Writer, space: Space) => void

const copyIndex: OperandWriter = (reader, out) => {
  out.u32(reader.u32())
}
/** Alignment is the exponent of a power of two; higher bits would select another memory. */
const copyAccess =
  (maxAlignment: number): OperandWriter =>
  (reader, out) => {
    const alignment = reader.u32()
    if (alignment > maxAlignment) throw new ModuleProblem('an access to memory has an alignment that is none')
    out.u32(alignment).u32(reader.u32())
  }

const operandWriters: Readonly<Record<Operand, OperandWriter>> = {
  none: () => undefined,
  block(reader, out, space) {
    const type = reader.s33()
    // A negative number is no result (-64) or one value type.
    if (type < 0n ? type !== -64n && !valueTypes.has(Number(type + 128n)) : type >= BigInt(space.types))
      throw new ModuleProblem('a block has a type that is none')
    out.signed(type)
  },
  label: copyIndex,
  // The engine checks locals when it compiles the result.
  local: copyIndex,
  branches(reader, out) {
    const count = reader.count(65_520, 'branches')
    out.u32(count)
    for (let branch = 0; branch <= count; branch++) out.u32(reader.u32())
  },
  function(reader, out, space) {
    out.u32(index(reader, space.functions, 'function'))
  },
  indirect(reader, out, space) {
    out.u32(index(reader, space.types, 'type')).u32(index(reader, space.tables, 'table'))
  },
  global(reader, out, space) {
    out.u32(index(reader, space.globals, 'global'))
  },
  table(reader, out, space) {
    out.u32(index(reader, space.tables, 'table'))
  },
  access8: copyAccess(0),
  access16: copyAccess(1),
  access32: copyAccess(2),
  access64: copyAccess(3),
  memory(reader, out) {
    zero(reader, 'memory')
    out.byte(0)
  },
  i32(reader, out) {
    out.signed(reader.s32())
  },
  i64(reader, out) {
    out.signed(reader.s64())
  },
  f32(reader, out) {
    out.raw(reader.take(4))
  },
  f64(reader, out) {
    out.raw(reader.take(8))
  },
  select(reader, out) {
    if (reader.u32() !== 1) throw new ModuleProblem('a choice has one type')
    out.u32(1).byte(valueType(reader))
  },
  heap(reader, out) {
    if (reader.s33() !== -16n) throw new ModuleProblem('a reference is one to a function')
    out.byte(0x70)
  },
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

/** A constant initial value. It may not refer to globals of the module. */
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
