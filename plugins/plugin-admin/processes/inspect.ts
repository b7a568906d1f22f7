/** Evaluates the code of a plugin that is not installed, and tells what it declares. It runs with read access only. */
import { writeSync } from 'node:fs'
import { permissionsOf, readDefinition, readOwnJson, unsupportedParts } from 'svc/internal'
import * as v from 'valibot'
import { ANSWER_FD, InspectionTask, shortProblem } from '../inspect/inspection.ts'
import type { Inspection } from '../inspect/inspection.ts'

const { folder: pluginFolder, maxProblemChars } = v.parse(InspectionTask, readOwnJson(process.argv[2] ?? ''))
inspect(pluginFolder).then(answer, (error: unknown) =>
  answer({ problem: shortProblem(error instanceof Error ? error.message : String(error), maxProblemChars) }),
)

function answer(message: object): void {
  writeSync(ANSWER_FD, `${JSON.stringify(message)}\n`)
}

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
