import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Refusal } from 'svc/sdk'
import type { ToolCallContext } from 'svc/sdk'
import type { WasmRunner } from '../../wasm/contract.ts'
import type { Skill, SkillTool } from '../manifest/skill.ts'
import type { Outcome } from './outcome.ts'

export interface GuestLimits {
  readonly fuel: number
  readonly timeoutSecs: number
  readonly outputBytes: number
}
/** What a guest may take at most. */
const MAX_SECS = 30

/** Runs a tool of a skill as a WebAssembly module: it computes, and reaches nothing. */
export async function runGuest(
  runner: WasmRunner | undefined,
  limits: GuestLimits,
  { folder, entry }: Skill,
  tool: SkillTool,
  input: Readonly<Record<string, unknown>>,
  { signal }: ToolCallContext,
): Promise<Outcome> {
  if (!runner) throw new Refusal('service_unavailable', 'The plugin "wasm" is not loaded')
  const { outcome, output, message } = await runner.run({
    module: await readFile(join(folder, entry)),
    input: new TextEncoder().encode(JSON.stringify({ tool: tool.name, input })),
    fuel: BigInt(limits.fuel),
    deadlineMs: Math.min(limits.timeoutSecs, MAX_SECS) * 1000,
    outputBytes: limits.outputBytes,
    signal,
  })
  return outcome === 'done'
    ? { failed: false, text: new TextDecoder().decode(output).trim() }
    : { failed: true, text: `${outcome}: ${message}` }
}
