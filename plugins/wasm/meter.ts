import { ModuleProblem, Reader, Writer } from './bytes.ts'
import { constant, index, meterBody, valueType } from './code.ts'
import type { Intrinsics, Space } from './code.ts'
import { funcref, i32, i64, op } from './opcodes.ts'

export interface MeterLimits {
  /** Pages of 64 KiB. */
  readonly memoryPages: number
  readonly moduleBytes: number
}
/** The exports with the fuel that is left, and whether growing was refused. A module may not export such a name. */
export const FUEL = '\0fuel'
export const REFUSED = '\0refused'
/** The only module name to import from, and only functions. */
export const HOST = 'svc'

const MAX_FUNCTIONS = 10_000
const MAX_TABLE = 10_000
const MAX_ITEMS = 100_000
const id = {
  type: 1,
  import: 2,
  function: 3,
  table: 4,
  memory: 5,
  global: 6,
  export: 7,
  start: 8,
  element: 9,
  code: 10,
  data: 11,
  dataCount: 12,
} as const
/** The order of sections: the count of data segments comes before the code. */
const order: readonly number[] = [
  id.type,
  id.import,
  id.function,
  id.table,
  id.memory,
  id.global,
  id.export,
  id.start,
  id.element,
  id.dataCount,
  id.code,
  id.data,
]

/**
 * Adds a fuel counter to a module: every basic block pays before it runs, and the module traps without fuel. Throws
 * `ModuleProblem` for anything unknown, because it could not be counted. The engine checks types when it compiles the
 * result.
 */
export function meter(bytes: Uint8Array, limits: MeterLimits): Uint8Array {
  if (bytes.byteLength > limits.moduleBytes)
    throw new ModuleProblem(`the module has ${bytes.byteLength} bytes; at most ${limits.moduleBytes} are allowed`)
  const reader = new Reader(bytes)
  if (Buffer.from(reader.take(8)).toString('hex') !== '0061736d01000000')
    throw new ModuleProblem('this is no WebAssembly module of version 1')
  const sections = new Map<number, Reader>()
  let last = -1
  while (!reader.done) {
    const kind = reader.byte()
    const part = reader.part(reader.u32())
    // Custom sections hold names and debug information; nothing of them runs.
    if (kind === 0) {
      part.name()
      continue
    }
    const place = order.indexOf(kind)
    if (place < 0) throw new ModuleProblem(`the section ${kind} is not known`)
    if (place <= last) throw new ModuleProblem('a section is there twice or in the wrong place')
    if (kind === id.start) throw new ModuleProblem('a module does nothing before it is called: it has a start section')
    last = place
    sections.set(kind, part)
  }
  return write(sections, limits)
}

function write(sections: ReadonlyMap<number, Reader>, limits: MeterLimits): Uint8Array {
  return new ModuleWriter(sections, limits).write()
}

/** Copies a module section by section, with the additions of the meter. */
class ModuleWriter {
  readonly #sections: ReadonlyMap<number, Reader>
  readonly #limits: MeterLimits
  readonly #out = new Writer().byte(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)
  readonly #importCount: number
  readonly #functionCount: number
  readonly #space: Space
  readonly #intrinsics: Intrinsics

  constructor(sections: ReadonlyMap<number, Reader>, limits: MeterLimits) {
    this.#sections = sections
    this.#limits = limits
    const types = this.#count(id.type, 'types')
    this.#importCount = this.#count(id.import, 'imports', 1_000)
    this.#functionCount = this.#count(id.function, 'functions', MAX_FUNCTIONS)
    const tables = this.#count(id.table, 'tables', 1)
    const memories = this.#count(id.memory, 'memories', 1)
    const globals = this.#count(id.global, 'globals')
    const elements = this.#count(id.element, 'element segments')
    const data = sections.get(id.dataCount)?.u32()
    const functions = this.#importCount + this.#functionCount
    if (functions > MAX_FUNCTIONS) throw new ModuleProblem(`${functions} functions are more than ${MAX_FUNCTIONS}`)
    this.#space = { types, functions, globals, tables, memories, elements, data }
    this.#intrinsics = { charge: functions, length: functions + 1, grown: functions + 2 }
  }

  write(): Uint8Array {
    this.#writeTypes()
    this.#writeImports()
    this.#writeFunctions()
    this.#copy(id.table, this.#space.tables, tableOf)
    this.#copy(id.memory, this.#space.memories, (reader, into) => memoryOf(reader, into, this.#limits.memoryPages))
    this.#writeGlobals()
    this.#writeExports()
    this.#copy(id.element, this.#space.elements, (reader, into) => elementOf(reader, into, this.#space))
    if (this.#space.data !== undefined) this.#add(id.dataCount, new Writer().u32(this.#space.data))
    this.#writeCode()
    this.#writeData()
    for (const [kind, rest] of this.#sections)
      if (!rest.done) throw new ModuleProblem(`the section ${kind} goes on behind its end`)
    return this.#out.done()
  }

  #count(kind: number, what: string, max = MAX_ITEMS): number {
    return this.#sections.get(kind)?.count(max, what) ?? 0
  }
  #add(kind: number, content: Writer): void {
    this.#out.byte(kind).sized(content.done())
  }
  /** Copies a section that the meter adds nothing to; leaves out an empty one. */
  #copy(kind: number, count: number, copyItem: CopyItem): void {
    if (count > 0) this.#add(kind, each(this.#sections.get(kind), count, 0, copyItem))
  }

  /** Adds the types of the intrinsics. */
  #writeTypes(): void {
    const types = each(this.#sections.get(id.type), this.#space.types, 2, functionType)
    this.#add(id.type, types.raw(Uint8Array.of(0x60, 1, i64, 0)).raw(Uint8Array.of(0x60, 1, i32, 1, i32)))
  }

  #writeImports(): void {
    const copyImport: CopyItem = (reader, into) => importOf(reader, into, this.#space)
    this.#add(id.import, each(this.#sections.get(id.import), this.#importCount, 0, copyImport))
  }

  /** Adds the three intrinsics with their types. */
  #writeFunctions(): void {
    const { types } = this.#space
    const functions = each(this.#sections.get(id.function), this.#functionCount, 3, (reader, into) => {
      into.u32(index(reader, types, 'type'))
    })
    this.#add(
      id.function,
      functions
        .u32(types)
        .u32(types + 1)
        .u32(types + 1),
    )
  }

  /** Adds the two counters of the meter. */
  #writeGlobals(): void {
    const globals = each(this.#sections.get(id.global), this.#space.globals, 2, (reader, into) =>
      globalOf(reader, into, this.#space),
    )
    this.#add(id.global, globals.byte(i64, 1, op.i64Const, 0, op.end).byte(i32, 1, op.i32Const, 0, op.end))
  }

  /** Adds the names of the two counters. */
  #writeExports(): void {
    const exports = each(this.#sections.get(id.export), this.#count(id.export, 'exports'), 2, (reader, into) =>
      exportOf(reader, into, this.#space),
    )
    for (const [at, name] of [FUEL, REFUSED].entries())
      exports
        .sized(Buffer.from(name))
        .byte(3)
        .u32(this.#space.globals + at)
    this.#add(id.export, exports)
  }

  #writeCode(): void {
    const bodies = this.#count(id.code, 'functions', MAX_FUNCTIONS)
    if (bodies !== this.#functionCount) throw new ModuleProblem(`${this.#functionCount} functions and ${bodies} bodies`)
    const metered = each(this.#sections.get(id.code), bodies, 3, (reader, into) => {
      into.sized(meterBody(reader.part(reader.u32()), this.#space, this.#intrinsics))
    })
    this.#add(id.code, intrinsicBodies(metered, this.#intrinsics, this.#space.globals))
  }

  #writeData(): void {
    const segments = this.#count(id.data, 'data segments')
    const announced = this.#space.data
    if (announced !== undefined && announced !== segments)
      throw new ModuleProblem(`${announced} data segments were announced and ${segments} came`)
    this.#copy(id.data, segments, (reader, into) => dataOf(reader, into, this.#space))
  }
}

type CopyItem = (reader: Reader, into: Writer) => void

/** Copies the items of a section; its count leaves room for `more` items. */
function each(reader: Reader | undefined, count: number, more: number, copyItem: CopyItem): Writer {
  const into = new Writer().u32(count + more)
  if (reader) for (let at = 0; at < count; at++) copyItem(reader, into)
  return into
}

function functionType(reader: Reader, into: Writer): void {
  if (reader.byte() !== 0x60) throw new ModuleProblem('a type is one of a function')
  into.byte(0x60)
  for (let list = 0; list < 2; list++) {
    const count = reader.count(1_000, 'values of a function')
    into.u32(count)
    for (let at = 0; at < count; at++) into.byte(valueType(reader))
  }
}

function importOf(reader: Reader, into: Writer, space: Space): void {
  const from = reader.name()
  const name = reader.name()
  if (Buffer.from(from).toString() !== HOST || reader.byte() !== 0)
    throw new ModuleProblem(`a module imports functions of "${HOST}" and nothing else`)
  into
    .sized(from)
    .sized(name)
    .byte(0)
    .u32(index(reader, space.types, 'type'))
}

function tableOf(reader: Reader, into: Writer): void {
  if (reader.byte() !== funcref) throw new ModuleProblem('a table holds functions')
  limitsOf(reader, into.byte(funcref), MAX_TABLE, 'entries of a table')
}
function memoryOf(reader: Reader, into: Writer, pages: number): void {
  limitsOf(reader, into, pages, 'pages of memory')
}

/** Keeps the initial size, and limits the maximum to what is allowed. */
function limitsOf(reader: Reader, into: Writer, max: number, what: string): void {
  const flags = reader.byte()
  if (flags > 1) throw new ModuleProblem('shared and 64-bit memory is not supported')
  const min = reader.u32()
  if (min > max) throw new ModuleProblem(`${min} ${what} are more than ${max}`)
  const requested = flags === 1 ? reader.u32() : max
  if (requested < min) throw new ModuleProblem(`${what}: the maximum is less than the minimum`)
  into.byte(1).u32(min).u32(Math.min(requested, max))
}

function globalOf(reader: Reader, into: Writer, space: Space): void {
  const type = valueType(reader)
  const mutability = reader.byte()
  if (mutability > 1) throw new ModuleProblem('a global has a kind that is not known')
  into.byte(type, mutability)
  constant(reader, into, space)
}

function exportOf(reader: Reader, into: Writer, space: Space): void {
  const name = reader.name()
  if (name[0] === 0) throw new ModuleProblem('a name of an export begins with a zero')
  const kind = reader.byte()
  const counts = [space.functions, space.tables, space.memories, space.globals]
  const count = counts[kind]
  if (count === undefined) throw new ModuleProblem('an export has a kind that is not known')
  into
    .sized(name)
    .byte(kind)
    .u32(index(reader, count, 'such thing to export'))
}

function elementOf(reader: Reader, into: Writer, space: Space): void {
  const flags = reader.u32()
  if (flags > 7) throw new ModuleProblem('an element segment has a kind that is not known')
  into.u32(flags)
  const passive = (flags & 1) !== 0
  const explicit = (flags & 2) !== 0
  const expressions = (flags & 4) !== 0
  if (!passive) {
    if (explicit) into.u32(index(reader, space.tables, 'table'))
    constant(reader, into, space)
  }
  if (passive || explicit) {
    const kind = reader.byte()
    if (kind !== (expressions ? funcref : 0)) throw new ModuleProblem('an element segment holds functions')
    into.byte(kind)
  }
  const count = reader.count(MAX_TABLE, 'elements')
  into.u32(count)
  for (let at = 0; at < count; at++) {
    if (expressions) constant(reader, into, space)
    else into.u32(index(reader, space.functions, 'function'))
  }
}

function dataOf(reader: Reader, into: Writer, space: Space): void {
  const flags = reader.u32()
  if (flags > 2) throw new ModuleProblem('a data segment has a kind that is not known')
  into.u32(flags)
  if (flags === 2) into.u32(index(reader, space.memories, 'memory'))
  if (flags !== 1) constant(reader, into, space)
  into.sized(reader.name())
}

/** The three intrinsics. Their globals `fuel` and `refused` follow those of the module. */
function intrinsicBodies(into: Writer, intrinsics: Intrinsics, globals: number): Writer {
  const fuel = globals
  const refused = globals + 1
  const charge = new Writer()
    .u32(0)
    .byte(op.globalGet)
    .u32(fuel)
    .byte(op.localGet, 0, op.i64Sub, op.globalSet)
    .u32(fuel)
    .byte(op.globalGet)
    .u32(fuel)
    .byte(op.i64Const, 0, op.i64LtS, op.if, 0x40, op.unreachable, op.end, op.end)
  const length = new Writer()
    .u32(0)
    .byte(op.localGet, 0, op.i64ExtendU, op.call)
    .u32(intrinsics.charge)
    .byte(op.localGet, 0, op.end)
  const grown = new Writer()
    .u32(0)
    .byte(op.localGet, 0, op.i32Const)
    .signed(-1n)
    .byte(op.i32Eq, op.if, 0x40, op.i32Const, 1, op.globalSet)
    .u32(refused)
    .byte(op.end, op.localGet, 0, op.end)
  for (const body of [charge, length, grown]) into.sized(body.done())
  return into
}
