import { deepStrictEqual, ok, rejects, strictEqual } from 'node:assert/strict'
import { UpstreamFailure } from 'svc/sdk'
import type { MediaKind } from 'svc/providers'
import type { Check, ProviderStage } from './provider.ts'

const never = (): AbortSignal => new AbortController().signal
const bytes = (text: string): Uint8Array => Buffer.from(text)
const plain = (data: Uint8Array | undefined): readonly number[] => [...(data ?? [])]

export type MediaScenario =
  | { readonly kind: 'images'; readonly images: readonly Uint8Array[] }
  | { readonly kind: 'speech'; readonly audio: Uint8Array }
  | { readonly kind: 'transcription'; readonly text: string }

function play(stage: ProviderStage, scenario: MediaScenario): string {
  if (!stage.playMedia) throw new Error('the stage plays no media')
  return stage.playMedia(scenario).model
}

interface MediaCase {
  readonly kind: MediaKind
  readonly id: string
  readonly title: string
  run(stage: ProviderStage, signal: AbortSignal): Promise<void>
  /** Any request at all. */
  ask(stage: ProviderStage, signal: AbortSignal): Promise<unknown>
}

const cases: readonly MediaCase[] = [
  {
    kind: 'images',
    id: 'images',
    title: 'as many pictures as were asked for arrive byte for byte, in order',
    async run(stage, signal) {
      const both = [Uint8Array.of(0x89, 0x50, 0, 255), Uint8Array.of(0xff, 0xd8, 1)]
      const images = both.slice(0, stage.picturesAtOnce)
      const model = play(stage, { kind: 'images', images })
      const made = await stage.client.createImages?.(
        { model, prompt: 'Zwei Äpfel 😀 "\n', count: images.length, size: '1024x1024' },
        signal,
      )
      deepStrictEqual(made?.images.map(plain), images.map(plain))
      const heard = stage.heardMedia?.()
      strictEqual(heard?.prompt, 'Zwei Äpfel 😀 "\n')
      strictEqual(heard.count, images.length)
      strictEqual(heard.model, model)
    },
    ask: async (stage, signal) =>
      stage.client.createImages?.({ model: stage.pictureModel ?? 'gpt-image-2', prompt: 'A dot', count: 1 }, signal),
  },
  {
    kind: 'speech',
    id: 'speech',
    title: 'speech arrives byte for byte, of the text and the voice that were asked for',
    async run(stage, signal) {
      const audio = Uint8Array.of(0x49, 0x44, 0x33, 0, 255, 128)
      const model = play(stage, { kind: 'speech', audio })
      const made = await stage.client.speak?.({ model, text: 'Grüß Gott 😀', voice: 'nova', format: 'flac' }, signal)
      deepStrictEqual(plain(made?.audio), plain(audio))
      const heard = stage.heardMedia?.()
      deepStrictEqual([heard?.text, heard?.voice, heard?.format], ['Grüß Gott 😀', 'nova', 'flac'])
    },
    ask: async (stage, signal) =>
      stage.client.speak?.({ model: 'tts-1', text: 'Hello', voice: 'alloy', format: 'mp3' }, signal),
  },
  {
    kind: 'transcription',
    id: 'transcription',
    title: 'a recording reaches the vendor byte for byte, with its name and language, and its text comes back',
    async run(stage, signal) {
      const audio = Uint8Array.from({ length: 256 }, (_, at) => at)
      const model = play(stage, { kind: 'transcription', text: ' Grüß Gott 😀 ' })
      const request = { model, audio, filename: 'a "b" ü.mp3', mime: 'audio/mpeg', language: 'de' }
      const made = await stage.client.transcribe?.(request, signal)
      strictEqual(made?.text, 'Grüß Gott 😀')
      const heard = stage.heardMedia?.()
      deepStrictEqual(plain(heard?.audio), plain(audio))
      strictEqual(heard?.language, 'de')
      ok(heard.filename?.endsWith('.mp3'), heard.filename)
    },
    ask: async (stage, signal) =>
      stage.client.transcribe?.(
        { model: 'whisper-1', audio: bytes('sound'), filename: 'a.wav', mime: 'audio/wav' },
        signal,
      ),
  },
]

/** What every driver does that makes media. */
export const mediaChecks: readonly Check[] = cases.flatMap(({ kind, id, title, run, ask }): readonly Check[] => [
  {
    id,
    network: true,
    needs: kind,
    title,
    run: (stage) => run(stage, never()),
  },
  {
    id: `${id}-refused`,
    network: true,
    needs: kind,
    title: `${id}: a refusal is told as an answer's is, and nothing is tried again`,
    async run(stage) {
      for (const [status, reason, retry] of [
        [401, 'auth', 'never'],
        [429, 'rate_limit', 'later'],
        [500, 'server_error', 'later'],
      ] as const) {
        stage.play({ kind: 'status', status })
        const before = stage.received?.() ?? 0
        await rejects(ask(stage, never()), (error) => {
          ok(error instanceof UpstreamFailure, String(error))
          deepStrictEqual([error.reason, error.retry], [reason, retry])
          return true
        })
        strictEqual((stage.received?.() ?? 0) - before, 1)
      }
    },
  },
  {
    id: `${id}-abort`,
    network: true,
    needs: kind,
    title: `${id}: a signal that is aborted rejects with its reason and sends nothing`,
    async run(stage) {
      const reason = new Error('not wanted')
      await rejects(ask(stage, AbortSignal.abort(reason)), (error) => error === reason)
      strictEqual(stage.received?.(), 0)
    },
  },
])
