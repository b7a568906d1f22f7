import * as v from 'valibot'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import { KeyNotFound } from './schema.ts'
import type { OpenPairs } from './service.ts'

/** A stored value or key may hold the words of a web page that was read in another session (security facts 1.2). */
const EXTERNAL = ['ExternalNetwork']
const key = v.pipe(v.string(), v.minLength(1), v.description('The key'))

/** The calling agent's own keys, under the rights of its manifest. */
export function pairTools(pairs: OpenPairs, agents: Agents): readonly AnyTool[] {
  const get = defineTool({
    name: 'kv_get',
    risk: 'read',
    labels: EXTERNAL,
    description: 'Read a value that was stored under a key. Answers JSON.',
    input: v.object({ key }),
    async run(input, { agentId }) {
      await agents.checkMemory(agentId, 'read', input.key)
      const text = await (await pairs()).read(agentId, input.key)
      if (text === undefined) throw new Refusal(KeyNotFound, `Key not found: ${input.key}`)
      return text
    },
  })
  const set = defineTool({
    name: 'kv_set',
    risk: 'write',
    description: 'Store any JSON value under a key. Replaces what was there.',
    input: v.object({ key, value: v.pipe(v.unknown(), v.description('Any JSON value')) }),
    async run(input, { agentId }) {
      await agents.checkMemory(agentId, 'write', input.key)
      await (await pairs()).put(agentId, input.key, input.value)
      return `Stored "${input.key}".`
    },
  })
  const remove = defineTool({
    name: 'kv_delete',
    risk: 'write',
    description: 'Delete a key and its value.',
    input: v.object({ key }),
    async run(input, { agentId }) {
      await agents.checkMemory(agentId, 'write', input.key)
      return (await (await pairs()).remove(agentId, input.key))
        ? `Deleted "${input.key}".`
        : `There was no key "${input.key}".`
    },
  })
  const list = defineTool({
    name: 'kv_list',
    risk: 'read',
    labels: EXTERNAL,
    description: 'List the keys that hold a value, without the values. Answers a JSON array.',
    input: v.object({ prefix: v.optional(v.pipe(v.string(), v.description('Only keys that start with this'))) }),
    async run(input, { agentId }) {
      const names = (await (await pairs()).names(agentId)).filter((name) => name.startsWith(input.prefix ?? ''))
      return JSON.stringify(await agents.readableMemory(agentId, names))
    },
  })
  return [get, set, remove, list]
}
