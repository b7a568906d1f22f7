import { describe, expect, it } from 'vitest'
import { containsPattern, exceeds } from '../../../plugins/agents/inherit.ts'
import { parseManifest } from '../../../plugins/agents/manifest.ts'

const manifest = (toml: string) => parseManifest(toml).document
const capabilities = (lines: string) =>
  manifest(
    `[capabilities]\n${['memory_read', 'memory_write']
      .filter((key) => !lines.includes(key))
      .map((key) => `${key} = []`)
      .join('\n')}\n${lines}`,
  )

describe('whether one pattern stands for no more than another', () => {
  it.each<[parent: string, child: string]>([
    ['*', 'anything'],
    ['*', '*.example.com'],
    ['*', '*'],
    ['*.example.com', 'api.example.com'],
    ['*.example.com', '*.eu.example.com'],
    ['*.example.com', '*.example.com'],
    ['file_*', 'file_read'],
    ['file_*', 'file_r*'],
    ['api.*', 'api.*.evil.test'],
    ['self.*', 'self.notes'],
    ['self.*', 'self.n*'],
    ['mcp_x_*', 'mcp_x_*'],
  ])('%s contains %s', (parent, child) => {
    expect(containsPattern(parent, child)).toBe(true)
  })

  it.each<[parent: string, child: string]>([
    ['*.example.com', '*'],
    ['*.example.com', 'example.com'],
    ['*.example.com', 'api.*'],
    ['*.example.com', '*example.com'],
    ['api.*.evil.test', 'api.*'],
    ['api.*.evil.test', 'api.x.evil.test'],
    ['file_*', 'file*'],
    ['file_*', '*'],
    ['file_*', '*file_'],
    ['file_read', 'file_*'],
    ['self.*', '*'],
    ['self.*', 'other.x'],
    ['*a*', 'a'],
    ['', 'a'],
    ['a', ''],
    ['*.a', '*.b.a*'],
  ])('%s does not contain %s', (parent, child) => {
    expect(containsPattern(parent, child)).toBe(false)
  })
})

describe('a child has no right its parent has not', () => {
  it.each<[string, parent: string, child: string, right: string | undefined]>([
    ['equal tools', 'tools = ["a", "b"]', 'tools = ["b"]', undefined],
    ['a tool more', 'tools = ["a"]', 'tools = ["a", "shell_exec"]', 'capabilities.tools: "shell_exec"'],
    ['everything', 'tools = ["a*"]', 'tools = ["*"]', 'capabilities.tools: "*"'],
    ['an empty parent', '', 'tools = ["a"]', 'capabilities.tools'],
    ['an empty child', 'tools = ["*"]\nshell = ["*"]', '', undefined],
    ['a narrower network', 'network = ["*.example.com"]', 'network = ["API.example.com"]', undefined],
    ['a wider network', 'network = ["*.example.com"]', 'network = ["*"]', 'capabilities.network'],
    ['another memory', 'memory_read = ["self.*"]', 'memory_read = ["*"]', 'capabilities.memory_read'],
    ['its own memory', 'memory_write = ["self.*"]', 'memory_write = ["self.*"]', undefined],
    ['the same command', 'shell = ["git *"]', 'shell = ["git *"]', undefined],
    ['any command of all', 'shell = ["*"]', 'shell = ["git *"]', undefined],
    ['code where the parent has none', 'shell = ["python3 *"]', 'shell = ["python3 -c *"]', 'capabilities.shell'],
    ['another word', 'shell = ["b*"]', 'shell = ["bash -c *"]', 'capabilities.shell'],
    ['spawning', 'agent_spawn = false', 'agent_spawn = true', 'capabilities.agent_spawn'],
    ['spawning of a spawner', 'agent_spawn = true', 'agent_spawn = true', undefined],
    ['other agents', 'agent_message = ["team-*"]', 'agent_message = ["*"]', 'capabilities.agent_message'],
    ['peers', '', 'ofp_connect = ["peer"]', 'capabilities.ofp_connect'],
  ])('%s', (_what, parent, child, right) => {
    const found = exceeds(capabilities(parent), capabilities(child))
    if (right === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(right)
  })

  const base = '[capabilities]\ntools = ["*"]'
  it.each<[string, parent: string, child: string, right: string]>([
    ['a bigger answer', '[model]\nmax_tokens = 1000', '[model]\nmax_tokens = 1001', 'model.max_tokens: 1001'],
    [
      'more tokens an hour',
      '[resources]\nmax_llm_tokens_per_hour = 1000',
      '[resources]\nmax_llm_tokens_per_hour = 2000',
      'max_llm_tokens_per_hour: 2000',
    ],
    ['no limit instead of one', '[resources]\nmax_cost_per_day_usd = 1.5', '', 'max_cost_per_day_usd: no limit'],
    [
      'more rounds',
      '[autonomous]\nmax_iterations = 5',
      '[autonomous]\nmax_iterations = 6',
      'autonomous.max_iterations',
    ],
    ['more calls', '[resources]\nmax_tool_calls_per_minute = 5', '', 'max_tool_calls_per_minute'],
    [
      'what the blocklist held back',
      'tool_blocklist = ["shell_*"]',
      'tool_blocklist = ["shell_exec"]',
      'tool_blocklist',
    ],
    ['what the allowlist left out', 'tool_allowlist = ["file_*"]', '', 'tool_allowlist'],
    ['tools of a parent without any', 'tools_disabled = true', '', 'tools'],
    ['all skills', 'skills = ["a"]', '', 'skills: all'],
    ['another server', 'mcp_servers = ["a"]', 'mcp_servers = ["b"]', 'mcp_servers: "b"'],
    ['servers of a parent without any', 'mcp_disabled = true', '', 'mcp_servers'],
    [
      'a key of its choice',
      '',
      '[model]\nbase_url = "https://evil.example"\napi_key_env = "AWS_SECRET_ACCESS_KEY"',
      'api_key_env',
    ],
    [
      'a key of its choice in reserve',
      '',
      '[[fallback_models]]\nprovider = "a"\nmodel = "b"\nbase_url = "https://evil.example"',
      'base_url',
    ],
    ['another exec_policy', '[exec_policy]\nmode = "deny"', '[exec_policy]\nmode = "full"', 'exec_policy'],
    ['other parameters of tools', '', '[tools.web_fetch]\nx = 1', 'tools'],
    ['a looser approval', '[metadata]\napproval = "always"', '', 'metadata.approval'],
    ['another folder', '', 'workspace = "/etc"', 'workspace'],
  ])('%s', (_what, parent, child, right) => {
    const full = (lines: string) =>
      manifest(lines.startsWith('[') || lines === '' ? `${base}\n${lines}` : `${lines}\n${base}`)
    expect(exceeds(full(parent), full(child))).toContain(right)
    expect(exceeds(full(parent), full(parent))).toBeUndefined()
  })
})
