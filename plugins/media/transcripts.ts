import { mediaTypeOf } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import type { Transcription } from 'svc/providers'
import { choosePlace, limitOf, makeOnce } from './calls.ts'
import type { Kept, Made, MediaDeps } from './calls.ts'
import { secondsOf } from './duration.ts'

export interface TranscriptInput {
  readonly path: string
  readonly language?: string | undefined
}
/** The endings vendors know the formats by. Source: https://platform.openai.com/docs/guides/speech-to-text */
const endings: readonly (readonly [type: RegExp, ending: string])[] = [
  [/^audio\/mpeg$/, 'mp3'],
  [/^audio\/(?:x-m4a|mp4)$/, 'm4a'],
  [/^video\/mp4$/, 'mp4'],
  [/^video\/mpeg$/, 'mpeg'],
  [/^(?:audio|video|application)\/ogg/, 'ogg'],
  [/^audio\/(?:x-)?(?:wav|vnd\.wave|wave)$/, 'wav'],
  [/^audio\/(?:x-)?flac$/, 'flac'],
  [/^(?:audio|video)\/webm$/, 'webm'],
]

/** What is said in a recording of the workspace. */
export function transcribe(deps: MediaDeps, input: TranscriptInput, call: ToolCallContext): Promise<Made> {
  return run(deps, { ...input, tool: 'speech_to_text' }, call, async ({ text }) => ({
    files: [],
    text: said(text),
    transcript: text,
  }))
}

/** The same into a file beside the recording. */
export async function transcribeToFile(deps: MediaDeps, input: TranscriptInput, call: ToolCallContext): Promise<Made> {
  const { agentId } = call
  const name = plain(input.path)
  const stem = name.replace(/\.[^./]+$/, '')
  for (const taken of [`${stem}.srt`, `${stem}.txt`])
    if (await exists(deps, agentId, taken))
      throw new Refusal('conflict', `"${taken}" is there already: read it, or remove it first`)
  return run(deps, { ...input, tool: 'media_transcribe' }, call, async ({ text, segments }) => {
    const isTimed = segments !== undefined && segments.length > 0
    const file = `${stem}.${isTimed ? 'srt' : 'txt'}`
    await deps.workspaces.write(agentId, file, isTimed ? toSubtitles(segments) : `${text}\n`)
    return { files: [file], text: `Transcribed "${name}" into "${file}".\n\n${said(text)}`, transcript: text }
  })
}

async function run(
  deps: MediaDeps,
  { path, language, tool }: TranscriptInput & { readonly tool: string },
  call: ToolCallContext,
  keep: (made: Transcription) => Promise<Kept>,
): Promise<Made> {
  const { config, media, workspaces } = deps
  const place = await choosePlace(deps, 'transcription', call.agentId)
  const { model, offer } = place
  const limit = limitOf(config.max_audio_bytes, 'max_audio_bytes', offer.transcription?.bytes, model.provider)
  const audio = await workspaces.read(call.agentId, plain(path), { maxBytes: limit.max })
  const mime = await mediaTypeOf(audio)
  const ending = endings.find(([type]) => type.test(mime))?.[1]
  if (ending === undefined)
    throw new Refusal(
      'invalid_request',
      `"${path}" is ${mime}: a recording is MP3, MP4, M4A, MPEG, Ogg, WAV, FLAC or WebM`,
    )
  const seconds = await secondsOf(audio, mime)
  return makeOnce(deps, call, {
    tool,
    kind: 'transcription',
    place,
    most: { seconds },
    // Its own name is nobody's business.
    make: (options) =>
      media.transcribe(
        model,
        { audio, filename: `recording.${ending}`, mime, ...(language !== undefined && { language }) },
        options,
      ),
    amount: ({ usage }) => ({ seconds, usage }),
    keep,
  })
}

const plain = (path: string): string => path.replace(/^(\.\/)+/, '')
const said = (text: string): string => (text === '' ? 'Nothing is said in it.' : text)

async function exists({ workspaces }: MediaDeps, agentId: string, name: string): Promise<boolean> {
  try {
    await workspaces.read(agentId, name, { maxBytes: 1 })
    return true
  } catch (error) {
    if (error instanceof Refusal && error.code === 'file_not_found') return false
    if (error instanceof Refusal && error.code === 'payload_too_large') return true
    throw error
  }
}

/** SubRip: number, times and text of each segment. */
export function toSubtitles(segments: NonNullable<Transcription['segments']>): string {
  return segments
    .map(({ start, end, text }, index) => {
      // A blank line ends a segment.
      const lines = text.trim().replaceAll(/\s*\n\s*/g, '\n')
      return `${index + 1}\n${time(start)} --> ${time(Math.max(start, end))}\n${lines}\n`
    })
    .join('\n')
}
function time(seconds: number): string {
  const ms = Math.round(seconds * 1000)
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0')
  return `${two(ms / 3_600_000)}:${two((ms / 60_000) % 60)}:${two((ms / 1000) % 60)},${String(ms % 1000).padStart(3, '0')}`
}
