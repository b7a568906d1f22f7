import type * as v from 'valibot'
import { Refusal } from 'svc/sdk'
import type { Agent } from '../agents/contract.ts'
import type { Spawn } from './tools.ts'

/** The manifest of an agent that another one describes. */
export function toManifest(input: v.InferOutput<typeof Spawn>, { manifest }: Agent): string {
  if (input.manifest_toml !== undefined) return input.manifest_toml
  if (input.name === undefined || input.system_prompt === undefined)
    throw new Refusal('invalid_request', 'Give manifest_toml, or name and system_prompt.')
  const network =
    input.network === true ? manifest.capabilities.network : input.network === false ? [] : (input.network ?? [])
  // A JSON text is a TOML text but for one character, which no name or prompt needs.
  const text = (value: unknown): string => JSON.stringify(value).replaceAll('\u007F', '')
  return [
    `name = ${text(input.name)}`,
    '[model]',
    `provider = ${text(manifest.model.provider)}`,
    `model = ${text(manifest.model.model)}`,
    `system_prompt = ${text(input.system_prompt)}`,
    '[capabilities]',
    `tools = ${text(input.tools ?? [])}`,
    `network = ${text(network)}`,
    `shell = ${text(input.shell ?? [])}`,
  ].join('\n')
}
