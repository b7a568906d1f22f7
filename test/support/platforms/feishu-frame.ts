/** pbbp2.Frame of Feishu, written without a library: what the adapter's library cannot read is not what Feishu sends. */
export interface FeishuFrame {
  readonly service: number
  readonly method: number
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Uint8Array
  /** As the platform numbers its logs: more than JavaScript counts exactly. */
  readonly logId: bigint
}

function varint(value: bigint): Buffer {
  const bytes: number[] = []
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)])
    bytes.push(Number(rest & 127n) | 128)
  }
}
const numberField = (field: number, value: bigint): Buffer => Buffer.concat([varint(BigInt(field << 3)), varint(value)])
const bytesField = (field: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([varint(BigInt((field << 3) | 2)), varint(BigInt(bytes.length)), bytes])
const textField = (field: number, text: string): Buffer => bytesField(field, Buffer.from(text))

export function encodeFeishuFrame({ service, method, headers, payload, logId }: FeishuFrame): Uint8Array {
  return Buffer.concat([
    numberField(1, 7n),
    numberField(2, logId),
    numberField(3, BigInt(service)),
    numberField(4, BigInt(method)),
    ...Object.entries(headers).map(([key, value]) =>
      bytesField(5, Buffer.concat([textField(1, key), textField(2, value)])),
    ),
    textField(7, 'application/json'),
    bytesField(8, payload),
    textField(9, logId.toString(16)),
  ])
}

interface RawField {
  readonly field: number
  readonly value: bigint | Uint8Array
}

function* readFields(data: Uint8Array): Generator<RawField> {
  let at = 0
  const number = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = data[at++]
      if (byte === undefined) throw new Error('the frame ends within a number')
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
  }
  while (at < data.length) {
    const tag = Number(number())
    const value = number()
    if ((tag & 7) === 0) yield { field: tag >> 3, value }
    else if ((tag & 7) === 2) {
      if (at + Number(value) > data.length) throw new Error('the frame ends within a text')
      yield { field: tag >> 3, value: data.subarray(at, (at += Number(value))) }
    } else throw new Error(`the type ${tag & 7} is not used`)
  }
}

/** Throws for what is no frame, or lacks a field that every frame has. */
export function decodeFeishuFrame(data: Uint8Array): FeishuFrame {
  const numbers = new Map<number, bigint>()
  const headers: Record<string, string> = {}
  let payload = new Uint8Array()
  for (const { field, value } of readFields(data)) {
    if (typeof value === 'bigint') numbers.set(field, value)
    else if (field === 8) payload = new Uint8Array(value)
    else if (field === 5) {
      const [key, text] = [1, 2].map((wanted) => {
        const found = [...readFields(value)].find((inner) => inner.field === wanted)?.value
        return Buffer.from(typeof found === 'bigint' ? [] : (found ?? [])).toString()
      })
      headers[key ?? ''] = text ?? ''
    }
  }
  const required = (field: number): bigint => {
    const value = numbers.get(field)
    if (value === undefined) throw new Error(`the frame has no field ${field}`)
    return value
  }
  required(1)
  return { service: Number(required(3)), method: Number(required(4)), headers, payload, logId: required(2) }
}
