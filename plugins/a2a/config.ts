import type * as v from 'valibot'
import { fields } from 'svc/sdk'
import { clientEntries } from './client/config.ts'
import { serverEntries } from './server/config.ts'

/** `[a2a]` at the top of the file. */
export const Settings = fields.table(
  'Agents and other programs that speak A2A.',
  fields.inFile('decides who else talks to the agents, and whom they talk to'),
  { ...serverEntries, ...clientEntries },
)
export type Settings = v.InferOutput<typeof Settings>
