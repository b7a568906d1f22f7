import { findNearest, suggest } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import type { Assignable } from './assignable.ts'

/**
 * The list as it is stored: `*` means all, which is an empty list. Throws `invalid_request` for an unknown name, unless
 * the agent has it already.
 */
export async function checkAssigned(
  assignable: Assignable,
  kind: 'skills' | 'mcp_servers',
  wanted: readonly string[],
  { manifest }: { readonly manifest: Readonly<Record<'skills' | 'mcp_servers', readonly string[]>> },
): Promise<readonly string[]> {
  const list = wanted.includes('*') ? [] : wanted
  const available = await assignable(kind)
  const unknown = list.find((one) => !available.includes(one) && !manifest[kind].includes(one))
  if (unknown !== undefined) {
    const nearest = suggest(findNearest(unknown, available))
    const command = commandLine(kind === 'skills' ? 'skill list' : 'mcp list')
    const names = available.length === 0 ? 'there are none' : `${command} names them`
    throw new Refusal('invalid_request', `${kind}: there is no "${unknown}"${nearest}; ${names}`, {
      details: { unknown, available },
    })
  }
  return list
}
