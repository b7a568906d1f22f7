import type { IncomingHttpHeaders, ServerResponse } from 'node:http'

/** What a request for media is answered with. */
export interface MediaAnswer {
  /** Base64. */
  readonly images?: readonly string[]
  readonly audio?: Uint8Array
  /** `times`: told by models that tell them. */
  readonly transcript?: {
    readonly text: string
    readonly times?: readonly { readonly start: number; readonly end: number; readonly text: string }[]
    readonly seconds?: number
  }
  readonly status?: number
  /** Nothing is answered: the connection is kept open. */
  readonly fault?: 'silent'
}
/** A request for media, in nobody's wire format. */
export interface HeardMedia {
  readonly path: string
  readonly model: string
  readonly prompt?: string
  readonly count?: number
  readonly size?: string
  readonly quality?: string
  readonly text?: string
  readonly voice?: string
  readonly format?: string
  readonly audio?: Uint8Array
  readonly filename?: string
  readonly language?: string
}

interface MediaRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly bytes: Uint8Array
  /** Mistral's form departs from OpenAI's. Source: https://docs.mistral.ai/api/endpoint/audio/transcriptions */
  readonly isMistral?: boolean
}

const IMAGE_FIELDS = new Set(['model', 'prompt', 'n', 'size', 'quality', 'response_format', 'output_format', 'user'])
const SPEECH_FIELDS = new Set(['model', 'input', 'voice', 'response_format', 'speed', 'instructions'])
const FORM_FIELDS = new Set([
  'model',
  'file',
  'language',
  'prompt',
  'response_format',
  'temperature',
  'timestamp_granularities[]',
])
const PATHS = ['/images/generations', '/audio/speech', '/audio/transcriptions']
export const isMediaPath = (path: string): boolean => PATHS.some((each) => path.split('?')[0]?.endsWith(each))

/**
 * `/images/generations`, `/audio/speech` and `/audio/transcriptions` as OpenAI's reference describes them. Returns what
 * it heard; `undefined` when it refused.
 * Source: https://platform.openai.com/docs/api-reference/images/create, /audio/createSpeech, /audio/createTranscription
 */
export async function answerMedia(
  response: ServerResponse,
  { path, headers, bytes, isMistral: isVendor = false }: MediaRequest,
  answer: () => Promise<MediaAnswer>,
): Promise<HeardMedia | undefined> {
  const bad = (message: string): undefined => void problem(response, 400, message)
  const plain = path.split('?')[0] ?? ''
  if (plain.endsWith('/audio/transcriptions'))
    return transcribe(response, { path, headers, bytes, isMistral: isVendor }, answer)
  if (headers['content-type'] !== 'application/json') return bad('The content type must be application/json.')
  const body = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>
  const known = plain.endsWith('/speech') ? SPEECH_FIELDS : IMAGE_FIELDS
  const unknown = Object.keys(body).find((key) => !known.has(key))
  if (unknown !== undefined) return bad(`Unknown parameter: '${unknown}'.`)
  const { model } = body
  if (typeof model !== 'string' || model === '') return bad('you must provide a model parameter')
  const given = await answer()
  if (given.fault === 'silent') return heardOf(path, body)
  if (given.status !== undefined) {
    problem(response, given.status, 'It failed.')
    return heardOf(path, body)
  }
  if (plain.endsWith('/speech')) {
    const refusal = refuseSpeech(body)
    if (refusal !== undefined) return bad(refusal)
    response.writeHead(200, { 'content-type': 'audio/mpeg' })
    response.end(given.audio ?? Buffer.from('ID3 spoken'))
    return heardOf(path, body)
  }
  const refusal = refuseImages(body)
  if (refusal !== undefined) return bad(refusal)
  const images = given.images ?? Array.from({ length: Number(body['n'] ?? 1) }, () => PNG)
  json(response, {
    created: 1_700_000_000,
    data: images.map((base64) => ({ b64_json: base64 })),
    ...(model.startsWith('gpt-image') && {
      usage: { input_tokens: 20, output_tokens: 1000 * images.length, total_tokens: 20 + 1000 * images.length },
    }),
  })
  return heardOf(path, body)
}

/** One red dot. */
export const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

function refuseImages({ model, prompt, n, size, quality, response_format: form }: Record<string, unknown>) {
  if (typeof prompt !== 'string' || prompt === '') return "Invalid 'prompt': expected a string."
  if (prompt.length > 32_000) return "Invalid 'prompt': string too long."
  if (n !== undefined && (!Number.isInteger(n) || Number(n) < 1 || Number(n) > 10)) return "Invalid 'n'."
  const isGpt = String(model).startsWith('gpt-image')
  if (isGpt && form !== undefined) return "Unknown parameter: 'response_format'."
  if (!isGpt && form !== 'b64_json') return 'This fake has no place for pictures: ask for b64_json.'
  if (size !== undefined && size !== 'auto' && !/^\d{3,4}x\d{3,4}$/.test(String(size))) return "Invalid value: 'size'."
  const qualities = isGpt ? ['auto', 'low', 'medium', 'high'] : ['standard', 'hd']
  if (quality !== undefined && !qualities.includes(String(quality))) return "Invalid value: 'quality'."
  return undefined
}

function refuseSpeech({ input, voice, response_format: format }: Record<string, unknown>): string | undefined {
  if (typeof input !== 'string' || input === '') return "Invalid 'input': expected a string."
  if (input.length > 4096) return "Invalid 'input': string too long. Expected a string with maximum length 4096."
  if (typeof voice !== 'string' || voice === '') return "Missing required parameter: 'voice'."
  return ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'].includes(String(format))
    ? undefined
    : "Invalid 'response_format'."
}

async function transcribe(
  response: ServerResponse,
  { path, headers, bytes, isMistral: isVendor = false }: MediaRequest,
  answer: () => Promise<MediaAnswer>,
): Promise<HeardMedia | undefined> {
  const bad = (message: string): undefined => void problem(response, 400, message)
  const type = headers['content-type'] ?? ''
  if (!type.startsWith('multipart/form-data; boundary=')) return bad('Could not parse multipart form.')
  const form = await new Response(Uint8Array.from(bytes), { headers: { 'content-type': type } }).formData()
  const unknown = [...form.keys()].find((key) => !FORM_FIELDS.has(key))
  if (unknown !== undefined) return bad(`Unknown parameter: '${unknown}'.`)
  const file = form.get('file')
  const model = String(form.get('model') ?? '')
  if (model === '') return bad('you must provide a model parameter')
  if (!(file instanceof File)) return bad("Invalid type for 'file'.")
  if (!/\.(?:flac|mp3|mp4|mpeg|mpga|m4a|ogg|wav|webm)$/.test(file.name)) return bad('Unrecognized file format.')
  const language = form.get('language')
  if (language !== null && !/^[a-z]{2,3}$/.test(String(language))) return bad('Language code is invalid.')
  const shape = form.get('response_format')
  const times = form.has('timestamp_granularities[]')
  const isMistral = isVendor || model.startsWith('voxtral')
  if (isMistral && shape !== null) return bad('Extra inputs are not permitted: response_format')
  if (isMistral && times && language !== null) return bad('timestamp_granularities is not compatible with language')
  if (!isMistral && times && shape !== 'verbose_json') return bad('timestamps need response_format verbose_json')
  if (shape === 'verbose_json' && !model.startsWith('whisper'))
    return bad(`response_format 'verbose_json' is not compatible with model '${model}'.`)
  const heard: HeardMedia = {
    path,
    model,
    audio: new Uint8Array(await file.arrayBuffer()),
    filename: file.name,
    ...(language !== null && { language: String(language) }),
  }
  const given = await answer()
  if (given.fault === 'silent') return heard
  if (given.status !== undefined) {
    problem(response, given.status, 'It failed.')
    return heard
  }
  const { text, times: segments = [], seconds = 60 } = given.transcript ?? { text: 'Hello.' }
  const told = segments.map((segment, id) => ({ id, seek: 0, ...segment, tokens: [], temperature: 0 }))
  if (isMistral)
    json(response, {
      model,
      text,
      language: null,
      segments: times ? told : [],
      usage: { prompt_audio_seconds: seconds, prompt_tokens: 4, completion_tokens: 9, total_tokens: 13 },
    })
  else if (shape === 'verbose_json')
    json(response, {
      task: 'transcribe',
      language: 'english',
      duration: seconds,
      text,
      segments: told,
      usage: { type: 'duration', seconds: Math.ceil(seconds) },
    })
  else json(response, { text, usage: { type: 'tokens', input_tokens: 600, output_tokens: 40, total_tokens: 640 } })
  return heard
}

function heardOf(path: string, body: Record<string, unknown>): HeardMedia {
  const text = (key: string) => (typeof body[key] === 'string' ? body[key] : undefined)
  return {
    path,
    model: text('model') ?? '',
    ...Object.fromEntries(
      Object.entries({
        prompt: text('prompt'),
        count: typeof body['n'] === 'number' ? body['n'] : undefined,
        size: text('size'),
        quality: text('quality'),
        text: text('input'),
        voice: text('voice'),
        format: path.includes('/speech') ? text('response_format') : undefined,
      }).filter(([, value]) => value !== undefined),
    ),
  }
}

function json(response: ServerResponse, body: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}
function problem(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } }))
}
