import { parse } from 'svc/sdk'
import { TriggerBody } from './body.ts'
import type { TriggerImports } from './contract.ts'
import type { Runtime } from './runtime.ts'

/** What comes from elsewhere, under an id that is the same each time. */
export async function add(
  { triggers }: Pick<Runtime, 'triggers'>,
  ...[id, body]: Parameters<TriggerImports['add']>
): Promise<boolean> {
  if (await triggers.find(id)) return false
  await triggers.create(parse(TriggerBody, body, 'trigger'), id)
  return true
}
