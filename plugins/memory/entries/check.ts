import { Refusal } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { NewMemory } from '../contract.ts'
import { isText } from '../store.ts'

const MAX_CATEGORY_CHARS = 64
const MAX_TAG_CHARS = 64

/** Throws `invalid_request` or `payload_too_large`, with the field and the limit. */
export function checkNew(memory: NewMemory, settings: Settings): void {
  checkText(memory, settings)
  const { tags, metadata = {}, confidence, category } = memory
  if (tags.length > settings.max_tags) fail(`tags: at most ${settings.max_tags} (plugins.memory.max_tags)`)
  if (tags.some((tag) => tag === '' || tag.length > MAX_TAG_CHARS))
    fail(`tags: each has 1 to ${MAX_TAG_CHARS} characters`)
  if (category !== undefined && (category === '' || category.length > MAX_CATEGORY_CHARS))
    fail(`category: 1 to ${MAX_CATEGORY_CHARS} characters`)
  if (!(confidence >= 0 && confidence <= 1)) fail('confidence: a number from 0 to 1')
  if (memory.level === 'session' && !memory.sessionId) fail('session_id: a memory of level session needs one')
  const json = JSON.stringify(metadata)
  if (Buffer.byteLength(json) > settings.max_metadata_bytes)
    fail(`metadata: at most ${settings.max_metadata_bytes} bytes of JSON (plugins.memory.max_metadata_bytes)`)
  const texts = [category, memory.userId, memory.sessionId, memory.supersedes, memory.idempotencyKey, ...tags]
  if (!isText(texts.join('')) || !isText(json) || json.includes(String.raw`\u0000`))
    fail('must be well-formed Unicode without NUL')
}

function checkText({ content, key }: NewMemory, settings: Settings): void {
  const field = key === undefined ? 'content' : 'value'
  if (content.trim() === '' && key === undefined) fail('content: must not be empty')
  if (content.length > settings.max_value_chars)
    throw new Refusal(
      'payload_too_large',
      `${field}: at most ${settings.max_value_chars} characters (plugins.memory.max_value_chars)`,
    )
  if (key !== undefined && key.length > settings.max_key_chars)
    fail(`key: at most ${settings.max_key_chars} characters (plugins.memory.max_key_chars)`)
  if (!isText(content) || !isText(key ?? ''))
    fail(`${key === undefined ? 'content' : 'key and value'} must be well-formed Unicode without NUL`)
}

function fail(message: string): never {
  throw new Refusal('invalid_request', message)
}
