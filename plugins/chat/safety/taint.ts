import type { Label } from '../../sessions/contract.ts'
import { SOURCES } from './labels.ts'
import type { Carried } from './labels.ts'
import { callKey } from './loop-guard.ts'

export interface Flow {
  readonly tool: string
  readonly args: unknown
  /** `Tool.refuses`. */
  readonly refuses: readonly string[]
  readonly carried: Carried
  /** Who approved exactly these arguments, by the hash `argumentHash` gives. */
  readonly approved?: ReadonlyMap<string, string> | undefined
  /** The agent's `capabilities.shell`: a command that stands there word for word was allowed by the operator. */
  readonly commands?: readonly string[] | undefined
}
/** One record for the audit: which label was let through to which sink, by whom, for which arguments. */
export interface Declassification {
  readonly label: Label
  readonly sink: string
  readonly by: string
  readonly argumentHash: string
}
export type FlowVerdict =
  | { readonly allowed: true; readonly declassified: readonly Declassification[] }
  /**
   * `text` is for the model and the audit: label, source and sink, never the value. `reason` is for the person who
   * approves.
   */
  | { readonly allowed: false; readonly label: Label; readonly text: string; readonly reason: string }

/**
 * Decides whether labelled arguments may reach a tool. Only two things clear a label: a person's approval of exactly
 * these arguments, and a command that the manifest lists word for word. The verdict names each of them for the audit.
 */
export function checkFlow({ tool, args, refuses, carried, approved, commands = [] }: Flow): FlowVerdict {
  const refused = [...carried.keys()].filter((label) => refuses.includes(label))
  const [label] = refused
  if (label === undefined) return { allowed: true, declassified: [] }
  const hash = argumentHash(tool, args)
  const by = runners.has(tool) && operatorAllows(args, commands) ? 'operator' : approved?.get(hash)
  if (by === undefined) {
    const source = carried.get(label) ?? 'outside'
    const origin = `its arguments may come from ${source}`
    const text = `${tool} refuses ${label}: ${origin}, and nobody has approved exactly this call`
    // The message is part of every turn; the person has to hear of whatever came from elsewhere.
    const foreign = refused.find((each) => each !== 'UserInput') ?? label
    return { allowed: false, label, text, reason: reasonFor(tool, foreign, carried.get(foreign) ?? 'outside') }
  }
  return { allowed: true, declassified: refused.map((each) => ({ label: each, sink: tool, by, argumentHash: hash })) }
}

/** The same for the same tool and arguments, in whatever order the keys were written. */
export function argumentHash(tool: string, args: unknown): string {
  return callKey(tool, args)
}

/** Why a person has to approve, in a sentence without internal words. */
function reasonFor(tool: string, label: Label, source: string): string {
  const subject = runners.has(tool) ? 'The command' : 'Its input'
  const origin = label === 'UserInput' && source === SOURCES.UserInput ? 'came from a chat message' : ORIGINS[label]
  const where = source.startsWith('the answer of') ? `may come from ${source}` : origin
  return `${subject} ${where}, so it needs your approval.`
}
const ORIGINS: Readonly<Record<Label, string>> = {
  ExternalNetwork: 'may come from the network',
  UserInput: 'may come from a message',
  Pii: 'may contain personal data',
  Secret: 'may contain a secret',
  UntrustedAgent: 'may come from another agent',
}

/** Tools whose `command` the operator's list in the manifest is about. */
const runners: ReadonlySet<string> = new Set(['shell_exec', 'process_start'])

function operatorAllows(args: unknown, commands: readonly string[]): boolean {
  if (typeof args !== 'object' || args === null || !('command' in args) || typeof args.command !== 'string')
    return false
  const rest = 'args' in args && Array.isArray(args.args) ? args.args : []
  // With separate arguments the words could be grouped otherwise than the operator read them.
  if (rest.length > 0) return false
  const command = args.command.trim()
  // A pattern is not exact: whoever wrote `git *` did not see what comes after it.
  return commands.some((each) => !each.includes('*') && each.trim() === command)
}
