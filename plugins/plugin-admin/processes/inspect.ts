/** Evaluates the code of a plugin that is not installed, and tells what it declares. It runs with read access only. */
import { permissionsOf, readDefinition, unsupportedParts } from 'svc/internal'
import type { Inspection } from '../inspect/inspection.ts'

process.once('message', ({ folder }: { readonly folder: string }) => {
  inspect(folder).then(
    (inspection) => process.send?.(inspection),
    (error: unknown) => process.send?.({ problem: error instanceof Error ? error.message : String(error) }),
  )
})

async function inspect(folder: string): Promise<Inspection> {
  const definition = await readDefinition(folder)
  const { name, version, apiVersion, requires = {}, provides = {}, uses } = definition
  const ids = (tokens: Readonly<Record<string, { readonly id: string }>>): string[] =>
    Object.values(tokens).map(({ id }) => id)
  return {
    name,
    version,
    ...(apiVersion === undefined ? {} : { apiVersion }),
    permissions: [...permissionsOf(definition)],
    declaresUses: uses !== undefined,
    requires: ids(requires),
    provides: ids(provides),
    unsupported: [...unsupportedParts(definition)],
  }
}
