import { mediaTypeOf } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import type { SpeechFormat } from 'svc/providers'
import { choosePlace, costText, fileStem, limitOf, makeOnce } from './calls.ts'
import type { Made, MediaDeps } from './calls.ts'

export interface SpeechInput {
  readonly text: string
  readonly voice?: string | undefined
  readonly format: SpeechFormat
}
/** What the first bytes of each format look like. */
const types: Readonly<Record<SpeechFormat, RegExp>> = {
  mp3: /^audio\/mpeg$/,
  opus: /ogg|opus/,
  aac: /aac/,
  flac: /flac/,
  wav: /wav/,
}

/** Has a text read aloud into the workspace. */
export async function speak(deps: MediaDeps, input: SpeechInput, call: ToolCallContext): Promise<Made> {
  const { config, media, workspaces } = deps
  const { text, format } = input
  const place = await choosePlace(deps, 'speech', call.agentId)
  const { model, offer } = place
  const limit = limitOf(config.max_speech_chars, 'max_speech_chars', offer.speech?.chars, model.provider)
  if (text.length > limit.max)
    throw new Refusal(
      'payload_too_large',
      `text: ${text.length} characters, and at most ${limit.max} are read aloud in one call (${limit.by}): split it`,
    )
  const voice = input.voice ?? config.voice ?? offer.speech?.voice
  if (voice === undefined) throw new Refusal('invalid_request', `voice: ${model.provider} has no usual voice; name one`)
  return makeOnce(deps, call, {
    tool: 'text_to_speech',
    kind: 'speech',
    place,
    most: { chars: text.length },
    make: (options) => media.speak(model, { text, voice, format }, options),
    amount: ({ usage }) => ({ chars: text.length, usage }),
    async keep({ audio }, costUsd) {
      const type = await mediaTypeOf(audio)
      if (!types[format].test(type))
        throw new UpstreamFailure(model.provider, `${model.provider} sent ${type} instead of ${format}`, {
          reason: 'malformed',
          retry: 'never',
        })
      const name = `${fileStem('speech', call)}.${format}`
      await workspaces.write(call.agentId, name, audio)
      return {
        files: [name],
        text:
          `Read ${text.length} characters aloud into ${name} (${audio.byteLength} bytes) with voice ${voice} of ` +
          `${model.provider}/${model.model}, ${costText(costUsd)}.`,
      }
    },
  })
}
