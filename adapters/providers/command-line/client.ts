import { readJson, UpstreamFailure } from 'svc/sdk'
import type { Exit, Spawn } from 'svc/sdk'
import { estimateUsage, isPlausible } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import { claudeLines } from './claude-lines.ts'
import { codexLines } from './codex-lines.ts'
import type { Config } from './driver.ts'
import { failureOf } from './errors.ts'
import { geminiLines } from './gemini-lines.ts'
import { Lines } from './lines.ts'
import type { LineReader, Said } from './lines.ts'
import type { ProgramRow } from './programs.ts'
import { Run } from './run.ts'

/** A line that grows over this is a fault of the program. In characters. */
const MAX_LINE = 8_388_608
/** So many broken lines are a broken answer; a single one is skipped. */
const MAX_MALFORMED = 3
type Trouble = Extract<Said, { type: 'failed' | 'trouble' }>

export function createClient(
  program: ProgramRow,
  { name, config }: ProviderLink<Config>,
  spawn: Spawn,
): ProviderClient {
  const broken = (what: string): UpstreamFailure =>
    new UpstreamFailure(name, `${name}: ${program.command} ${what}`, { reason: 'malformed', retry: 'later' })

  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    signal.throwIfAborted()
    const run = new Run(name, config.max_output_bytes)
    const lines = new Lines(MAX_LINE)
    const read = reader(program)
    let chars = 0
    let known = 0
    let malformed = 0
    let trouble: Trouble | undefined
    let whole = false

    function meant(line: string | undefined): readonly Said[] {
      if (line === undefined) throw broken(`wrote a line of more than ${MAX_LINE} characters`)
      // Programs greet and warn in between.
      if (!line.startsWith('{')) return []
      let json: unknown
      try {
        json = readJson(line)
      } catch {
        if (++malformed >= MAX_MALFORMED) throw broken('wrote an answer that cannot be read')
        return []
      }
      known++
      return read(json)
    }

    try {
      await run.start(program, request, config, spawn, signal)
      for (let exit: Exit | undefined; !exit;) {
        const piece = await run.next()
        signal.throwIfAborted()
        if (!(piece instanceof Uint8Array)) exit = piece
        for (const line of piece instanceof Uint8Array ? lines.feed(piece) : [lines.finish()]) {
          for (const said of meant(line)) {
            if (said.type === 'text' || said.type === 'thinking') {
              chars += said.delta.length
              yield { type: said.type, delta: said.delta }
            } else if (said.type === 'done') {
              whole = true
              yield {
                type: 'end',
                stop: said.stop,
                usage: said.usage && isPlausible(said.usage) ? said.usage : estimateUsage(request, chars),
              }
              return
            } else if (said.type === 'failed') throw failureOf(name, program, said.message, said.status)
            else if (said.type === 'trouble') trouble = said
          }
        }
        if (exit) throw ended(exit)
      }
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      await run.close(whole)
    }

    /** It ended without its last word. */
    function ended({ reason, code }: Exit): UpstreamFailure {
      if (reason === 'timeout')
        return new UpstreamFailure(name, `${name}: ${program.command} took longer than ${config.time_limit_secs} s`, {
          reason: 'timeout',
          retry: 'later',
        })
      if (trouble) return failureOf(name, program, trouble.message, trouble.status)
      if (known > 0)
        return new UpstreamFailure(name, `${name}: ${program.command} stopped in the middle of its answer`, {
          reason: 'cut',
          retry: 'later',
        })
      return code === 0
        ? broken('ended without an answer in JSON')
        : failureOf(name, program, run.complaint || `it ended with code ${code ?? 'none'}`, undefined)
    }
  }

  /** Nothing less than an answer proves that somebody is signed in. */
  async function probe(signal: AbortSignal): Promise<{ model: string }> {
    for await (const event of complete(
      {
        model: program.defaultModel,
        system: '',
        turns: [{ role: 'user', parts: [{ type: 'text', text: 'Answer with OK.' }] }],
        tools: [],
      },
      signal,
    ))
      if (event.type === 'end') break
    return { model: program.defaultModel }
  }

  return { complete, probe }
}

function reader({ lines, cachedApart }: ProgramRow): LineReader {
  return lines === 'claude' ? claudeLines(cachedApart === true) : lines === 'codex' ? codexLines() : geminiLines
}
