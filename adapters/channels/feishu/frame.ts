import { PbfReader, PbfWriter } from 'pbf'
import type { FrameCodec } from 'svc/channels'

/**
 * A frame of the long connection: Protocol Buffers, as in pbbp2.Frame of Feishu's own clients (looked up in November
 * 2026).
 */
export interface Frame {
  readonly method: number
  readonly headers: ReadonlyMap<string, string>
  readonly payload: Uint8Array
  /** All other fields as they came, for the answer: some have numbers that JavaScript cannot hold. */
  readonly envelope: Uint8Array
}

export const CONTROL = 0
export const DATA = 1
const Field = { seqId: 1, logId: 2, service: 3, method: 4, header: 5, payload: 8 } as const
const HeaderField = { key: 1, value: 2 } as const

function readFrame(data: Uint8Array): Frame {
  const reader = new PbfReader(data)
  const headers = new Map<string, string>()
  const envelope: Uint8Array[] = []
  let method = -1
  let payload = new Uint8Array()
  for (let start = 0, field = reader.nextField(); field !== 0; start = reader.pos, field = reader.nextField()) {
    if (field === Field.method) method = reader.readVarint()
    else if (field === Field.header) headers.set(...readHeader(reader))
    else if (field === Field.payload) payload = new Uint8Array(reader.readBytes())
    else reader.skip(reader.type)
    if (field !== Field.payload) envelope.push(data.subarray(start, reader.pos))
  }
  return { method, headers, payload, envelope: Buffer.concat(envelope) }
}

function readHeader(reader: PbfReader): [key: string, value: string] {
  return reader.readMessage<[string, string]>(
    (field, header) => {
      if (field === HeaderField.key) header[0] = reader.readString()
      else if (field === HeaderField.value) header[1] = reader.readString()
    },
    ['', ''],
  )
}

/** The sign of life that Feishu expects. */
export function pingFrame(service: number): Uint8Array {
  const writer = new PbfWriter()
  for (const field of [Field.seqId, Field.logId]) writer.writeVarintField(field, 0)
  writer.writeVarintField(Field.service, service)
  writer.writeVarintField(Field.method, CONTROL)
  writer.writeMessage(
    Field.header,
    (_, header) => {
      header.writeStringField(HeaderField.key, 'type')
      header.writeStringField(HeaderField.value, 'ping')
    },
    undefined,
  )
  return writer.finish()
}

/** The answer to a frame: the same with another payload. */
export function answerFrame({ envelope }: Frame, payload: object): Uint8Array {
  const writer = new PbfWriter()
  writer.writeBytesField(Field.payload, Buffer.from(JSON.stringify(payload)))
  return Buffer.concat([envelope, writer.finish()])
}

export const frameCodec: FrameCodec = {
  encode: (frame) => frame as Uint8Array,
  decode(data) {
    if (typeof data === 'string') throw new TypeError('feishu sent a text instead of a frame')
    return readFrame(data)
  },
}
