import { probeCompletion } from 'svc/providers'
import type { CompletionEvent, CompletionRequest, ProviderClient, ProviderLink } from 'svc/providers'
import type { Spawn } from 'svc/sdk'
import { Answer } from './answer.ts'
import type { Config } from './driver.ts'
import type { ProgramRow } from './programs.ts'
import { ProgramRun } from './run.ts'

export function createClient(
  program: ProgramRow,
  { name, config }: ProviderLink<Config>,
  spawn: Spawn,
): ProviderClient {
  async function* complete(request: CompletionRequest, signal: AbortSignal): AsyncGenerator<CompletionEvent> {
    signal.throwIfAborted()
    const run = new ProgramRun(name, config.max_output_bytes)
    const answer = new Answer(name, program, config, request)
    try {
      await run.start(program, request, config, spawn, signal)
      for (;;) {
        const output = await run.next()
        signal.throwIfAborted()
        const isPiece = output instanceof Uint8Array
        for (const event of isPiece ? answer.read(output) : answer.finish()) yield event
        if (answer.isComplete) return
        if (!isPiece) throw answer.exitFailure(output, run.stderr)
      }
    } catch (error) {
      signal.throwIfAborted()
      throw error
    } finally {
      await run.close(answer.isComplete)
    }
  }

  // Only an answer proves that the program is signed in.
  return { complete, probe: (signal) => probeCompletion(complete, program.defaultModel, signal) }
}
