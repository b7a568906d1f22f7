import type * as Check from './json-schema-check.ts'

/** Why a value does not fit a JSON schema, evaluated with the first question and not with every start. */
export const schemaFault = async (value: unknown, schema: unknown): Promise<string | undefined> =>
  (await checker()).firstFault(value, schema)
const checker = (): Promise<typeof Check> => import('./json-schema-check.ts')
