import { ModuleProblem, Reader, Writer } from './bytes.ts'
import { constant, index, meterBody, valueType } from './code.ts'
import type { Intrinsics, Space } from './code.ts'
import { funcref, i32, i64, op } from './opcodes.ts'

export interface MeterLimits {
  /** Pages of 64 KiB. */
  readonly memoryPages: number
  readonly moduleBytes: number
}
/** Under these names the host finds what is left of the fuel, and whether growing was refused; no export of a module may begin like that. */
export const FUEL = '\0fuel'
export const REFUSED = '\0refused'
/** The one place a module may import from, and only functions. */
export const HOST = 'svc'

const MOST_FUNCTIONS = 10_000
const MOST_TABLE = 10_000
const MOST_THINGS = 100_000
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
/** The order sections come in; the count of data comes before the code. */
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
 * The same module with a counter in it: every stretch of code pays before it runs, and the module ends when nothing is left. Throws
 * `ModuleProblem` for what it does not know, because what it does not know it could not count. Types are checked by the engine, which
 * compiles what comes out of here.
 */
export function meter(bytes: Uint8Array, limits: MeterLimits): Uint8Array {
  if (bytes.byteLength > limits.moduleBytes)
    throw new ModuleProblem(`the module has ${bytes.byteLength} bytes; at most ${limits.moduleBytes} are taken`)
  const reader = new Reader(bytes)
  if (Buffer.from(reader.take(8)).toString('hex') !== '0061736d01000000')
    throw new ModuleProblem('this is no WebAssembly module of version 1')
  const sections = new Map<number, Reader>()
  let last = -1
  while (!reader.done) {
    const kind = reader.byte()
    const part = reader.part(reader.u32())
    // Names and notes of compilers: nothing of them runs.
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
  const out = new Writer().byte(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)
  const add = (kind: number, content: Writer): void => {
    out.byte(kind).sized(content.done())
  }
  const count = (kind: number, what: string, most = MOST_THINGS): number => sections.get(kind)?.count(most, what) ?? 0

  const types = count(id.type, 'types')
  const imported = count(id.import, 'imports', 1_000)
  const own = count(id.function, 'functions', MOST_FUNCTIONS)
  const tables = count(id.table, 'tables', 1)
  const memories = count(id.memory, 'memories', 1)
  const globals = count(id.global, 'globals')
  const elements = count(id.element, 'element segments')
  const dataCount = sections.get(id.dataCount)?.u32()
  const functions = imported + own
  if (functions > MOST_FUNCTIONS) throw new ModuleProblem(`${functions} functions are more than ${MOST_FUNCTIONS}`)
  const space: Space = { types, functions, globals, tables, memories, elements, data: dataCount }
  const intrinsics: Intrinsics = { charge: functions, length: functions + 1, grown: functions + 2 }

  add(
    id.type,
    each(sections.get(id.type), types, 2, functionType)
      .raw(Uint8Array.of(0x60, 1, i64, 0))
      .raw(Uint8Array.of(0x60, 1, i32, 1, i32)),
  )
  add(
    id.import,
    each(sections.get(id.import), imported, 0, (reader, into) => importOf(reader, into, space)),
  )
  const functionTypes = each(sections.get(id.function), own, 3, (reader, into) => {
    into.u32(index(reader, types, 'type'))
  })
  add(
    id.function,
    functionTypes
      .u32(types)
      .u32(types + 1)
      .u32(types + 1),
  )
  if (tables > 0) add(id.table, each(sections.get(id.table), tables, 0, tableOf))
  if (memories > 0)
    add(
      id.memory,
      each(sections.get(id.memory), memories, 0, (reader, into) => memoryOf(reader, into, limits.memoryPages)),
    )
  const withOurs = each(sections.get(id.global), globals, 2, (reader, into) => {
    const type = valueType(reader)
    const changes = reader.byte()
    if (changes > 1) throw new ModuleProblem('a global has a kind that is not known')
    into.byte(type, changes)
    constant(reader, into, space)
  })
  add(id.global, withOurs.byte(i64, 1, op.i64Const, 0, op.end).byte(i32, 1, op.i32Const, 0, op.end))
  const exports = sections.get(id.export)
  const exported = each(exports, exports?.count(MOST_THINGS, 'exports') ?? 0, 2, (reader, into) =>
    exportOf(reader, into, space),
  )
  for (const [at, name] of [FUEL, REFUSED].entries())
    exported
      .sized(Buffer.from(name))
      .byte(3)
      .u32(globals + at)
  add(id.export, exported)
  if (elements > 0)
    add(
      id.element,
      each(sections.get(id.element), elements, 0, (reader, into) => elementOf(reader, into, space)),
    )
  if (dataCount !== undefined) add(id.dataCount, new Writer().u32(dataCount))
  const code = sections.get(id.code)
  const bodies = code?.count(MOST_FUNCTIONS, 'functions') ?? 0
  if (bodies !== own) throw new ModuleProblem(`${own} functions and ${bodies} bodies`)
  add(
    id.code,
    intrinsicBodies(
      each(code, own, 3, (reader, into) => {
        into.sized(meterBody(reader.part(reader.u32()), space, intrinsics))
      }),
      intrinsics,
      globals,
    ),
  )
  const data = sections.get(id.data)
  const segments = data?.count(MOST_THINGS, 'data segments') ?? 0
  if (dataCount !== undefined && dataCount !== segments)
    throw new ModuleProblem(`${dataCount} data segments were announced and ${segments} came`)
  if (segments > 0)
    add(
      id.data,
      each(data, segments, 0, (reader, into) => dataOf(reader, into, space)),
    )
  for (const [kind, rest] of sections)
    if (!rest.done) throw new ModuleProblem(`the section ${kind} goes on behind its end`)
  return out.done()
}

/** A list of things, each copied by its own rule, with room for so many more. */
function each(
  reader: Reader | undefined,
  count: number,
  more: number,
  copy: (reader: Reader, into: Writer) => void,
): Writer {
  const into = new Writer().u32(count + more)
  if (reader) for (let at = 0; at < count; at++) copy(reader, into)
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
  const [from, name] = [reader.name(), reader.name()]
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
  limitsOf(reader, into.byte(funcref), MOST_TABLE, 'entries of a table')
}
function memoryOf(reader: Reader, into: Writer, pages: number): void {
  limitsOf(reader, into, pages, 'pages of memory')
}

/** What is asked for at the start, and as most what is allowed, whatever the module says. */
function limitsOf(reader: Reader, into: Writer, most: number, what: string): void {
  const flags = reader.byte()
  if (flags > 1) throw new ModuleProblem('memory that is shared or has 64 bits is not taken')
  const least = reader.u32()
  if (least > most) throw new ModuleProblem(`${least} ${what} are more than ${most}`)
  const asked = flags === 1 ? reader.u32() : most
  if (asked < least) throw new ModuleProblem(`${what}: the most is less than the least`)
  into.byte(1).u32(least).u32(Math.min(asked, most))
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
  const [passive, explicit, expressions] = [(flags & 1) !== 0, (flags & 2) !== 0, (flags & 4) !== 0]
  if (!passive) {
    if (explicit) into.u32(index(reader, space.tables, 'table'))
    constant(reader, into, space)
  }
  if (passive || explicit) {
    const kind = reader.byte()
    if (kind !== (expressions ? funcref : 0)) throw new ModuleProblem('an element segment holds functions')
    into.byte(kind)
  }
  const count = reader.count(MOST_TABLE, 'elements')
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

/** The three functions that count. `fuel` is the global behind those of the module, `refused` the one behind that. */
function intrinsicBodies(into: Writer, intrinsics: Intrinsics, globals: number): Writer {
  const [fuel, refused] = [globals, globals + 1]
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
