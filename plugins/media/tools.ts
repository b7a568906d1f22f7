import * as v from 'valibot'
import { defineTool, idempotencyKey } from 'svc/sdk'
import type { AnyTool, Recovery, ToolCallContext } from 'svc/sdk'
import type { MediaKind } from 'svc/providers'
import type { MediaDeps } from './calls.ts'
import { imageInput, speechInput, transcriptInput } from './schema.ts'

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
    input: v.object(imageInput),
    assess: ({ count }) => ({ intent: count === 1 ? 'have a picture made' : `have ${count} pictures made` }),
    async run(input, call) {
      const { createImages } = await import('./images.ts')
      return (await createImages(deps(), input, call)).text
    },
  })
}

function speechTool(deps: () => MediaDeps, shared: Shared): AnyTool {
  return defineTool({
    ...shared,
    name: 'text_to_speech',
    risk: 'write',
    description: 'Read a text aloud into a sound file in the folder media of the workspace. It costs money.',
    input: v.object(speechInput),
    assess: () => ({ intent: 'have a text read aloud' }),
    async run(input, call) {
      const { speak } = await import('./speech.ts')
      return (await speak(deps(), input, call)).text
    },
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
    input: v.object(transcriptInput),
    assess: () => ({ intent: 'have a recording transcribed' }),
    async run(input, call) {
      const { transcribeToFile } = await import('./transcripts.ts')
      return (await transcribeToFile(deps(), input, call)).text
    },
  })
}

function listenTool(deps: () => MediaDeps, shared: Shared): AnyTool {
  return defineTool({
    ...shared,
    name: 'speech_to_text',
    risk: 'read',
    description: 'What is said in a sound file of the workspace, as text. It costs money.',
    input: v.object(transcriptInput),
    assess: () => ({ intent: 'have a sound file written down' }),
    async run(input, call) {
      const { transcribe } = await import('./transcripts.ts')
      return (await transcribe(deps(), input, call)).text
    },
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
