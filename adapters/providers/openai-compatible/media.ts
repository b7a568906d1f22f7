import type { ImageGenerateParamsNonStreaming } from 'openai/resources/images'
import type { SpeechCreateParams } from 'openai/resources/audio/speech'
import { UpstreamFailure } from 'svc/sdk'
import type { ApiClient, ApiHeaders, MediaClient, MediaUsage, TranscriptionRequest } from 'svc/providers'
import type { Access } from './client.ts'
import type { Vendor } from './vendors.ts'
import { Images, Transcript } from './wire.ts'
import type { WireMediaUsage } from './wire.ts'

export interface MediaDeps {
  readonly name: string
  readonly api: ApiClient
  readonly access: Access
  readonly headers: ApiHeaders
  readonly vendor: Vendor
}

/**
 * Pictures, speech and transcriptions through `/images/generations`, `/audio/speech` and `/audio/transcriptions`. The
 * caller keeps each request within the vendor's limits.
 */
export function createMedia({ name, api, access, headers, vendor }: MediaDeps): Required<MediaClient> {
  const malformed = (what: string): UpstreamFailure =>
    new UpstreamFailure(name, `${name} sent ${what}`, { reason: 'malformed', retry: 'never' })
  return {
    async createImages({ model, prompt, count, size, quality }, signal) {
      signal.throwIfAborted()
      const body = {
        model,
        prompt,
        n: count,
        ...(size !== undefined && { size }),
        ...(quality !== undefined && { quality }),
        // Models that always send the bytes refuse the field.
        ...(!alwaysSendsBytes(model) && { response_format: 'b64_json' }),
      } as ImageGenerateParamsNonStreaming
      const answer = await api.json(
        await access.url('/images/generations', model, signal),
        { signal, headers, body: JSON.stringify(body) },
        { schema: Images, what: 'pictures' },
      )
      const images = (answer.data ?? []).map(({ b64_json: base64 }) => {
        // An address would have to be fetched, and may lead anywhere.
        if (base64 == null) throw malformed('the address of a picture instead of the picture')
        return Buffer.from(base64, 'base64')
      })
      return { images, usage: usageOf(answer.usage) }
    },
    async speak({ model, text, voice, format }, signal) {
      signal.throwIfAborted()
      const body: SpeechCreateParams = { model, input: text, voice, response_format: format }
      const response = await api.send(await access.url('/audio/speech', model, signal), {
        signal,
        headers,
        accept: '*/*',
        body: JSON.stringify(body),
      })
      const type = response.header('content-type') ?? ''
      const audio = await response.bytes()
      if (/^(?:text\/|application\/json)/i.test(type)) throw malformed(`${type} instead of speech`)
      return { audio, usage: {} }
    },
    async transcribe(request, signal) {
      signal.throwIfAborted()
      // `Response` writes the form, with the boundary in its type.
      const form = new Response(transcriptionForm(request, vendor))
      const bytes = new Uint8Array(await form.arrayBuffer())
      const contentType = form.headers.get('content-type') ?? ''
      const answer = await api.json(
        await access.url('/audio/transcriptions', request.model, signal),
        { signal, headers, upload: { bytes, contentType } },
        { schema: Transcript, what: 'a transcription' },
      )
      const seconds = answer.usage?.seconds ?? answer.usage?.prompt_audio_seconds ?? answer.duration
      return {
        text: answer.text.trim(),
        ...(answer.segments && { segments: answer.segments }),
        usage: { ...usageOf(answer.usage), ...(typeof seconds === 'number' && { seconds }) },
      }
    },
  }
}

const alwaysSendsBytes = (model: string): boolean => /(?:^|\/)(?:gpt-image|chatgpt-image)/.test(model)
/** Only the models named Whisper tell the times of what was said. */
const tellsTimes = (model: string): boolean => /whisper/i.test(model)

function transcriptionForm(
  { model, audio, filename, mime, language }: TranscriptionRequest,
  { plainTranscriptions: isPlain = false }: Vendor,
): FormData {
  const form = new FormData()
  form.append('model', model)
  form.append('file', new Blob([Uint8Array.from(audio)], { type: mime }), filename)
  if (language !== undefined) form.append('language', language)
  if (!isPlain) form.append('response_format', tellsTimes(model) ? 'verbose_json' : 'json')
  if (isPlain ? language === undefined : tellsTimes(model)) form.append('timestamp_granularities[]', 'segment')
  return form
}

function usageOf(usage: WireMediaUsage | null | undefined): MediaUsage {
  const input = usage?.input_tokens ?? usage?.prompt_tokens
  const output = usage?.output_tokens ?? usage?.completion_tokens
  return input == null || output == null ? {} : { tokens: { input, output } }
}
