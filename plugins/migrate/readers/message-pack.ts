import { checkDepth, messageOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'

/** Of one value; what a hostile length would allocate is never allocated. */
const MAX_LENGTH = 67_108_864

/** MessagePack, as `rmp_serde` writes it with names. Throws `invalid_request` for anything else. */
export async function decodePacked(value: unknown): Promise<unknown> {
  if (!(value instanceof Uint8Array)) throw new Refusal('invalid_request', 'it is not MessagePack')
  const { decode } = await import('@msgpack/msgpack')
  try {
    const decoded = decode(value, {
      maxStrLength: MAX_LENGTH,
      maxBinLength: MAX_LENGTH,
      maxArrayLength: 1_000_000,
      maxMapLength: 100_000,
      maxExtLength: 1_024,
    })
    checkDepth(decoded)
    return decoded
  } catch (cause) {
    throw new Refusal('invalid_request', `it is damaged: ${messageOf(cause)}`, { cause })
  }
}
