import * as v from 'valibot'
import { defineTool, idempotencyKey } from 'svc/sdk'
import type { AnyTool, Recovery, ToolCallContext } from 'svc/sdk'
import { SPEECH_FORMATS } from 'svc/providers'
import type { MediaKind } from 'svc/providers'
import type { MediaDeps } from './calls.ts'

const text = (max: number, description: string) =>
  v.pipe(v.string(), v.minLength(1), v.maxLength(max), v.description(description))
const path = text(1024, 'Relative to the workspace')
const language = v.optional(
  v.pipe(
    v.string(),
    v.regex(/^[a-z]{2,3}$/, 'expected a code such as "en"'),
    v.description('ISO 639-1, such as "en"; found out when absent'),
  ),
)
/** Words of the vendor: letters, digits and what joins them. */
const word = (description: string) =>
  v.optional(v.pipe(v.string(), v.regex(/^[\w.:/@-]{1,100}$/, 'expected one word'), v.description(description)))
/** What is asked for leaves the daemon, and what comes back may say anything. */
const outside = { labels: ['ExternalNetwork'], refuses: ['Secret', 'Pii'] }
/** After the time the provider has, for the files. */
const MARGIN_SECS = 30

/** The tools for what providers with a key can make. */
export function mediaTools(
  deps: () => MediaDeps,
  kinds: readonly MediaKind[],
  timeoutSecs: number,
): readonly AnyTool[] {
  const shared = { ...outside, timeoutSecs: timeoutSecs + MARGIN_SECS, recover: recoverWith(deps) }
  const made: Readonly<Record<MediaKind, () => readonly AnyTool[]>> = {
    images: () => [imageTool(deps, shared)],
    speech: () => [speechTool(deps, shared)],
    transcription: () => [transcribeTool(deps, shared), listenTool(deps, shared)],
  }
  return kinds.flatMap((kind) => made[kind]())
}

type Shared = typeof outside & { readonly timeoutSecs: number; readonly recover: ReturnType<typeof recoverWith> }

function imageTool(deps: () => MediaDeps, shared: Shared): AnyTool {
  return defineTool({
    ...shared,
    name: 'image_generate',
    risk: 'write',
    description:
      'Make pictures from a description. They are written to the folder media of the workspace; each one costs money.',
    input: v.object({
      prompt: text(32_000, 'What the pictures show, with style, light and what to leave out'),
      model: word('A model of the provider, or provider/model; the usual one when absent'),
      size: word('Such as 1024x1024, 1536x1024 or 1024x1536'),
      quality: word('Such as low, medium or high'),
      count: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(10)), 1),
    }),
    assess: ({ count }) => ({ intent: count === 1 ? 'have a picture made' : `have ${count} pictures made` }),
    run: async (input, call) => (await import('./images.ts')).createImages(deps(), input, call),
  })
}

function speechTool(deps: () => MediaDeps, shared: Shared): AnyTool {
  return defineTool({
    ...shared,
    name: 'text_to_speech',
    risk: 'write',
    description: 'Read a text aloud into a sound file in the folder media of the workspace. It costs money.',
    input: v.object({
      text: text(100_000, 'What is said'),
      voice: word('Such as alloy, nova or onyx; the usual one when absent'),
      format: v.optional(v.picklist(SPEECH_FORMATS), 'mp3'),
    }),
    assess: () => ({ intent: 'have a text read aloud' }),
    run: async (input, call) => (await import('./speech.ts')).speak(deps(), input, call),
  })
}

function transcribeTool(deps: () => MediaDeps, shared: Shared): AnyTool {
  return defineTool({
    ...shared,
    name: 'media_transcribe',
    risk: 'write',
    description:
      'Write down what is said in a recording of the workspace, sound or video, into a file beside it: .srt with ' +
      'times where the provider tells them, else .txt. It costs money.',
    input: v.object({ path, language }),
    assess: () => ({ intent: 'have a recording transcribed' }),
    run: async (input, call) => (await import('./transcripts.ts')).transcribeToFile(deps(), input, call),
  })
}

function listenTool(deps: () => MediaDeps, shared: Shared): AnyTool {
  return defineTool({
    ...shared,
    name: 'speech_to_text',
    risk: 'read',
    description: 'What is said in a sound file of the workspace, as text. It costs money.',
    input: v.object({ path, language }),
    assess: () => ({ intent: 'have a sound file written down' }),
    run: async (input, call) => (await import('./transcripts.ts')).transcribe(deps(), input, call),
  })
}

/** What is known of a call that was cut off: one that was sent may have been paid for. */
function recoverWith(deps: () => MediaDeps) {
  return async (_: unknown, call: ToolCallContext): Promise<Recovery> => {
    const found = await deps().store.find(idempotencyKey(call))
    if (!found) return { outcome: 'repeat' }
    if (found.state === 'done') return { outcome: 'done', text: found.result ?? '' }
    return { outcome: 'unknown', text: (await import('./calls.ts')).OUTCOME_UNKNOWN }
  }
}
