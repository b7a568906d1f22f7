import * as v from 'valibot'
import { findNearest, suggest } from 'svc/internal'
import { line, Refusal } from 'svc/sdk'
import type { LoadedAgent } from './registry.ts'

/** The names there are to assign now. */
export type Assignable = (kind: 'skills' | 'mcp_servers') => Promise<readonly string[]>

export const Names = v.pipe(
  v.array(line(256)),
  v.maxLength(1000, 'at most 1000'),
  v.check((list) => new Set(list).size === list.length, 'must not hold a name twice'),
)

/**
 * The list as it is stored: `*` means all, which is an empty list. Throws `invalid_request` for an unknown name, unless
 * the agent has it already.
 */
export async function checkAssigned(
  assignable: Assignable,
  kind: 'skills' | 'mcp_servers',
  wanted: readonly string[],
  { manifest }: LoadedAgent,
): Promise<readonly string[]> {
  const list = wanted.includes('*') ? [] : wanted
  const available = await assignable(kind)
  const unknown = list.find((one) => !available.includes(one) && !manifest[kind].includes(one))
  if (unknown !== undefined) {
    const nearest = suggest(findNearest(unknown, available))
    const names = available.length === 0 ? 'none' : available.join(', ')
    throw new Refusal('invalid_request', `${kind}: there is no "${unknown}"${nearest}; there are ${names}`, {
      details: { unknown, available },
    })
  }
  return list
}
