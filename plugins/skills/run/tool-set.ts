import * as v from 'valibot'
import { messageOf, schemaFault } from 'svc/internal'
import { describeInput, Refusal } from 'svc/sdk'
import type { AnyTool, Logger, ToolAnswer, ToolCallContext, Tools } from 'svc/sdk'
import type { Capability } from '../../agents/contract.ts'
import type { WasmRunner } from '../../wasm/contract.ts'
import { toolName } from '../manifest/skill.ts'
import type { Skill, SkillTool } from '../manifest/skill.ts'
import { runGuest } from './guest.ts'
import type { GuestLimits } from './guest.ts'
import { toAnswer } from './outcome.ts'
import type { Outcome } from './outcome.ts'
import { runProgram } from './program.ts'
import type { ProgramDeps } from './program.ts'

export interface ToolSetDeps {
  readonly tools: Tools
  readonly log: Logger
  readonly program: ProgramDeps
  readonly wasm: () => WasmRunner | undefined
  readonly guest: GuestLimits
  readonly counted: (skill: string, outcome: 'ok' | 'failed') => void
}
type Rights = Pick<AnyTool, 'risk' | 'needs' | 'labels' | 'refuses'>
/** A call that ends by its own time limit says so before that of the registry cuts it off. */
const MARGIN_SECS = 15

/** The tools of all skills among those of the daemon. */
export class SkillToolSet {
  readonly #deps: ToolSetDeps
  /** By name of the skill. */
  #registered: ReadonlyMap<string, Skill> = new Map()
  constructor(deps: ToolSetDeps) {
    this.#deps = deps
  }

  /** Registers the tools of these skills, and takes away all others. */
  update(skills: readonly Skill[]): void {
    const { log, tools } = this.#deps
    const current = new Map(skills.filter((each) => each.tools.length > 0).map((each) => [each.name, each]))
    for (const name of this.#registered.keys()) if (!current.has(name)) tools.set(sourceOf(name), [])
    const registered = new Map<string, Skill>()
    for (const [name, skill] of current) {
      try {
        if (this.#registered.get(name) !== skill)
          tools.set(
            sourceOf(name),
            skill.tools.map((tool) => this.#tool(skill, tool)),
          )
        registered.set(name, skill)
      } catch (error) {
        // Such as a-b with c, and a with b_c: both are skill_a_b_c.
        log.warn(`the tools of the skill "${name}" are not offered: ${messageOf(error)}`)
      }
    }
    this.#registered = registered
  }

  #tool(skill: Skill, tool: SkillTool): AnyTool {
    const rights = rightsOf(skill)
    const who = `${tool.name} of the skill "${skill.name}"`
    return {
      name: toolName(skill.name, tool.name),
      title: `${skill.name}: ${tool.name}`,
      description: tool.description,
      input: describeInput(v.looseObject({}), tool.inputSchema),
      ...rights,
      timeoutSecs: this.#deps.program.limits.timeoutSecs + MARGIN_SECS,
      ...(rights.risk === 'execute' && {
        assess: () => ({ intent: `run ${who}, a shell script`, harm: 'critical' as const, standing: 'once' as const }),
      }),
      run: (input, call) => this.#run(skill, tool, input as Readonly<Record<string, unknown>>, call),
    }
  }

  async #run(
    skill: Skill,
    tool: SkillTool,
    input: Readonly<Record<string, unknown>>,
    call: ToolCallContext,
  ): Promise<ToolAnswer> {
    const { counted, log } = this.#deps
    const who = `${tool.name} of the skill "${skill.name}"`
    const fail = (why: string): void => {
      counted(skill.name, 'failed')
      log.warn(`${who} failed: ${why}`)
    }
    const fault = await schemaFault(input, tool.inputSchema)
    if (fault !== undefined) {
      fail(fault)
      return { failed: true, text: `${who} was not run, because its arguments do not fit: ${fault}` }
    }
    let outcome: Outcome
    try {
      outcome = await this.#outcome(skill, tool, input, call)
    } catch (error) {
      if (call.signal.aborted) throw error
      fail(messageOf(error))
      if (error instanceof Refusal) throw error
      return { failed: true, text: `${who} could not be run: ${messageOf(error)}` }
    }
    if (outcome.failed) fail(outcome.text)
    else counted(skill.name, 'ok')
    return toAnswer(who, outcome)
  }

  #outcome(
    skill: Skill,
    tool: SkillTool,
    input: Readonly<Record<string, unknown>>,
    call: ToolCallContext,
  ): Promise<Outcome> {
    const { guest, program, wasm } = this.#deps
    return skill.runtime === 'wasm'
      ? runGuest(wasm(), guest, skill, tool, input, call)
      : runProgram(program, skill, tool, input, call)
  }
}

/** What an agent needs for a tool: the more the skill may use, the more. */
function rightsOf({ runtime, permissions }: Skill): Rights {
  if (runtime === 'shell')
    return {
      risk: 'execute',
      needs: 'shell' satisfies Capability,
      labels: ['ExternalNetwork'],
      refuses: ['ExternalNetwork', 'UntrustedAgent', 'UserInput', 'Secret', 'Pii'],
    }
  if (permissions.some((each) => each.startsWith('network:')))
    return {
      risk: 'write',
      needs: 'network' satisfies Capability,
      labels: ['ExternalNetwork'],
      refuses: ['Secret', 'Pii'],
    }
  // What it answers may come from a file, as what file_read answers does.
  const labels = permissions.some((each) => each.startsWith('files:')) ? (['ExternalNetwork'] as const) : []
  return { risk: permissions.includes('files:write') ? 'write' : 'read', labels }
}
export const sourceOf = (skill: string): string => `skill:${skill}`
