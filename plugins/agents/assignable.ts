import * as v from 'valibot'
import { line } from 'svc/sdk'

/** The names there are to assign now. */
export type Assignable = (kind: 'skills' | 'mcp_servers') => Promise<readonly string[]>

export const Names = v.pipe(
  v.array(line(256)),
  v.maxLength(1000, 'at most 1000'),
  v.check((list) => new Set(list).size === list.length, 'must not hold a name twice'),
)
