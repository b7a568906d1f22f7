import type { Finding, ProbeCase } from '../security/contract.ts'
import { inherited } from './child-manifest.ts'
import { containsPattern } from './inherit.ts'
import { parseManifest } from './manifest.ts'

const parent = `name = "parent"
[capabilities]
tools = ["web_fetch", "kv_*", "agent_spawn"]
network = ["api.example.com", "*.example.org"]
memory_read = ["self.*"]
memory_write = ["self.*"]
shell = ["git status"]
agent_message = ["team-*"]
agent_spawn = true
[resources]
max_llm_tokens_per_hour = 1000
max_tool_calls_per_minute = 10
[autonomous]
max_iterations = 5
`
/** Children, each with the rights it requests and whether its parent has them (security facts 1.12). */
const children: readonly (readonly [what: string, toml: string, allowed: boolean])[] = [
  ['nothing', '', true],
  ['one of its tools', 'capabilities.tools = ["web_fetch"]', true],
  ['a narrower pattern', 'capabilities.tools = ["kv_get"]\ncapabilities.network = ["www.example.org"]', true],
  ['another tool', 'capabilities.tools = ["shell_exec"]', false],
  ['every tool', 'capabilities.tools = ["*"]', false],
  ['the whole network', 'capabilities.network = ["*"]', false],
  ['a host that only begins like its own', 'capabilities.network = ["api.example.com.evil.test"]', false],
  ['a pattern that only begins like its own', 'capabilities.network = ["api.*"]', false],
  ['all of the memory', 'capabilities.memory_read = ["*"]', false],
  ['a command with a pattern', 'capabilities.shell = ["git *"]', false],
  ['messages to anyone', 'capabilities.agent_message = ["*"]', false],
  ['a bigger number of tokens', 'resources.max_llm_tokens_per_hour = 1001', false],
  ['no limit of tokens', 'resources.max_llm_tokens_per_hour = 0', false],
  ['more rounds', 'autonomous.max_iterations = 6', false],
]
const patterns: readonly (readonly [parent: string, child: string, contained: boolean])[] = [
  ['*', '*.example.com', true],
  ['*.example.com', '*', false],
  ['api.*', 'api.one', true],
  ['api.*.evil.test', 'api.*', false],
  ['api.*', 'api.*.evil.test', true],
  ['a*c', 'abc', false],
  ['', 'x', false],
]

/** A parent and the children it might request, through the check of a spawn by an agent. Nothing is created. */
export async function probe(agents: { count(): Promise<number> }): Promise<Finding> {
  const before = await agents.count()
  const mine = parseManifest(parent).document
  const cases: ProbeCase[] = children.map(([what, toml, allowed]) => {
    const { right } = inherited(mine, `name = "child"\n${toml}\n`)
    return {
      name: `a child that asks for ${what} is ${allowed ? 'made' : 'refused'}`,
      passed: (right === undefined) === allowed,
    }
  })
  for (const [one, other, contained] of patterns)
    cases.push({
      name: `"${one}" ${contained ? 'contains' : 'does not contain'} "${other}"`,
      passed: containsPattern(one, other) === contained,
    })
  const empty = parseManifest('name = "poor"\n[capabilities]\ntools = []\nagent_spawn = true\n').document
  cases.push(
    {
      name: 'a parent without tools has none to give',
      passed: inherited(empty, 'name = "child"\ncapabilities.tools = ["web_fetch"]\n').right !== undefined,
    },
    { name: 'no agent was made', passed: (await agents.count()) === before },
  )
  return { cases, evidence: `${children.length} children, ${patterns.length} pairs of patterns` }
}
