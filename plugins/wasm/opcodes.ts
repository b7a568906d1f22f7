/** What follows an opcode. `block`: a type of a block; `branches`: a list of labels and one more. */
export type Operand =
  | 'none'
  | 'block'
  | 'label'
  | 'branches'
  | 'function'
  | 'indirect'
  | 'local'
  | 'global'
  | 'table'
  | 'access8'
  | 'access16'
  | 'access32'
  | 'access64'
  | 'memory'
  | 'i32'
  | 'i64'
  | 'f32'
  | 'f64'
  | 'select'
  | 'heap'
/** With the prefix 0xfc. The numbers of segments come before those of the memory or the table. */
export type Bulk =
  | 'none'
  | 'memory.init'
  | 'data.drop'
  | 'memory.copy'
  | 'memory.fill'
  | 'table.init'
  | 'elem.drop'
  | 'table.copy'
  | 'table.grow'
  | 'table.size'
  | 'table.fill'

const range = (from: number, to: number, operand: Operand): readonly (readonly [number, Operand])[] =>
  Array.from({ length: to - from + 1 }, (_, at) => [from + at, operand])

/** WebAssembly 1.0 with what compilers use: multi-value, sign extension, bulk memory, reference types. */
export const operands: ReadonlyMap<number, Operand> = new Map<number, Operand>([
  [0x00, 'none'],
  [0x01, 'none'],
  [0x02, 'block'],
  [0x03, 'block'],
  [0x04, 'block'],
  [0x05, 'none'],
  [0x0b, 'none'],
  [0x0c, 'label'],
  [0x0d, 'label'],
  [0x0e, 'branches'],
  [0x0f, 'none'],
  [0x10, 'function'],
  [0x11, 'indirect'],
  [0x1a, 'none'],
  [0x1b, 'none'],
  [0x1c, 'select'],
  [0x20, 'local'],
  [0x21, 'local'],
  [0x22, 'local'],
  [0x23, 'global'],
  [0x24, 'global'],
  [0x25, 'table'],
  [0x26, 'table'],
  [0x28, 'access32'],
  [0x29, 'access64'],
  [0x2a, 'access32'],
  [0x2b, 'access64'],
  [0x2c, 'access8'],
  [0x2d, 'access8'],
  [0x2e, 'access16'],
  [0x2f, 'access16'],
  [0x30, 'access8'],
  [0x31, 'access8'],
  [0x32, 'access16'],
  [0x33, 'access16'],
  [0x34, 'access32'],
  [0x35, 'access32'],
  [0x36, 'access32'],
  [0x37, 'access64'],
  [0x38, 'access32'],
  [0x39, 'access64'],
  [0x3a, 'access8'],
  [0x3b, 'access16'],
  [0x3c, 'access8'],
  [0x3d, 'access16'],
  [0x3e, 'access32'],
  [0x3f, 'memory'],
  [0x40, 'memory'],
  [0x41, 'i32'],
  [0x42, 'i64'],
  [0x43, 'f32'],
  [0x44, 'f64'],
  ...range(0x45, 0xc4, 'none'),
  [0xd0, 'heap'],
  [0xd1, 'none'],
  [0xd2, 'function'],
])
export const bulk: ReadonlyMap<number, Bulk> = new Map<number, Bulk>([
  [0, 'none'],
  [1, 'none'],
  [2, 'none'],
  [3, 'none'],
  [4, 'none'],
  [5, 'none'],
  [6, 'none'],
  [7, 'none'],
  [8, 'memory.init'],
  [9, 'data.drop'],
  [10, 'memory.copy'],
  [11, 'memory.fill'],
  [12, 'table.init'],
  [13, 'elem.drop'],
  [14, 'table.copy'],
  [15, 'table.grow'],
  [16, 'table.size'],
  [17, 'table.fill'],
])

export const op = {
  unreachable: 0x00,
  block: 0x02,
  loop: 0x03,
  if: 0x04,
  else: 0x05,
  end: 0x0b,
  br: 0x0c,
  brIf: 0x0d,
  brTable: 0x0e,
  return: 0x0f,
  call: 0x10,
  localGet: 0x20,
  globalGet: 0x23,
  globalSet: 0x24,
  memoryGrow: 0x40,
  i32Const: 0x41,
  i64Const: 0x42,
  f32Const: 0x43,
  f64Const: 0x44,
  i32Eq: 0x46,
  i64LtS: 0x53,
  i64Sub: 0x7d,
  i64ExtendU: 0xad,
  refNull: 0xd0,
  refFunc: 0xd2,
  bulk: 0xfc,
} as const
/** After these another stretch of code begins, which may be reached without the one before or left out. */
export const ends: ReadonlySet<number> = new Set([
  op.unreachable,
  op.loop,
  op.if,
  op.else,
  op.end,
  op.br,
  op.brIf,
  op.brTable,
  op.return,
])

export const i32 = 0x7f
export const i64 = 0x7e
export const funcref = 0x70
/** Numbers and references to functions. References to things of the host and vectors are not among them. */
export const valueTypes: ReadonlySet<number> = new Set([i32, i64, 0x7d, 0x7c, funcref])
