import { expect, it } from 'vitest'
import { parseManifest } from '../../../plugins/agents/manifest.ts'
import { mayUse } from '../../../plugins/agents/tool-rights.ts'

const tool = { name: 'mcp_github_issues', risk: 'read', source: 'mcp:github' } as const
const granting = '[capabilities]\ntools = ["mcp_*"]'

it.each([
  ['every server by default', granting, true],
  ['a server it names', `mcp_servers = ["github"]\n${granting}`, true],
  ['servers by a pattern', `mcp_servers = ["git*"]\n${granting}`, true],
  ['no other server', `mcp_servers = ["gitlab"]\n${granting}`, false],
  ['no server when they are disabled', `mcp_disabled = true\n${granting}`, false],
  ['no tool that is not granted', `mcp_servers = ["github"]\n[capabilities]\ntools = ["web_*"]`, false],
])('an agent may use tools of %s', (_what, manifest, allowed) => {
  expect(mayUse(parseManifest(`name = "a"\n${manifest}`).document, 'full', tool)).toBe(allowed)
})
