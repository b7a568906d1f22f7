import { parse } from 'svc/sdk'
import { TriggerBody } from './body.ts'
import { parsePattern } from './events/pattern.ts'
import type { TriggerImports } from './contract.ts'
import type { Runtime } from './runtime.ts'

/** What comes from elsewhere, under an id that is the same each time. */
export async function add(
  { triggers }: Pick<Runtime, 'triggers'>,
  ...[id, body, { isCheck = false } = {}]: Parameters<TriggerImports['add']>
): Promise<boolean> {
  if (await triggers.find(id)) return false
  const given = parse(TriggerBody, body, 'trigger')
  if (isCheck) parsePattern(given.pattern)
  else await triggers.create(given, id)
  return true
}
