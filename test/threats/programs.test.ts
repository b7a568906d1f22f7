import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { SpawnRequest } from '../../core/process/child.ts'
import { createSpawn } from '../../core/process/spawn.ts'
import { Scope } from '../../core/scope/scope.ts'
import { startHost } from '../support/host.ts'
import { openTools } from '../support/tool-stage.ts'

/** What somebody may write who may say which server is started. */
interface ServerDefinition {
  readonly command: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

const canary = `canary-${process.pid}`
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-programs-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))
afterEach(() => {
  vi.unstubAllEnvs()
})

/** Nothing ran that leaves this file behind. */
const pwned = (): string => join(folder, 'pwned')
const untouched = async (): Promise<void> => {
  expect((await readdir(folder)).filter((name) => name === 'pwned')).toEqual([])
}

describe('threats: programs that servers of tools are', () => {
  it('MCP stdio command injection: the door starts what is named and nothing that is hidden in it', async () => {
    const scope = new Scope('servers')
    const start = async (
      { command, args, env }: ServerDefinition,
      more: Partial<SpawnRequest> = {},
    ): Promise<string> => {
      const child = await createSpawn(scope).start({
        command,
        cwd: folder,
        timeoutMs: 5_000,
        ...(args ? { args } : {}),
        ...(env ? { env } : {}),
        ...more,
      })
      await child.ended
      return child.read().text
    }
    try {
      // The name is a name: no shell reads it, no way leads up, and what lies in the folder is not taken for a program of the system.
      await writeFile(join(folder, 'cat'), `#!/bin/sh\ntouch ${pwned()}\n`)
      await chmod(join(folder, 'cat'), 0o755)
      for (const command of [
        '../../bin/sh',
        'bin/../../sh',
        '..\\sh',
        `sh -c "touch ${pwned()}"`,
        `true; touch ${pwned()}`,
        `$(touch ${pwned()})`,
        'cat\u0000x',
        'cat\n',
        '',
        `cat | tee ${pwned()}`,
      ]) {
        await expect(start({ command })).rejects.toMatchObject({ name: 'Refusal' })
      }
      expect(await start({ command: 'cat', args: ['/dev/null'] })).toBe('')
      await untouched()
      // Arguments come back as they were given.
      const hostile = [
        '; touch pwned',
        '$(touch pwned)',
        '`touch pwned`',
        '| touch pwned',
        '&& touch pwned',
        '> pwned',
        '*',
        '~',
        '$HOME',
        '%PATH%',
        '-e touch',
        "'",
        '"',
        '\n',
        '\\',
      ]
      expect(await start({ command: 'printf', args: ['%s\\0', ...hostile] })).toBe(
        hostile.map((text) => `${text}\0`).join(''),
      )
      await untouched()
      // What a definition says of the environment cannot make a loader or an interpreter run something, nor move where programs are found.
      for (const name of [
        'LD_PRELOAD',
        'LD_LIBRARY_PATH',
        'NODE_OPTIONS',
        'PYTHONSTARTUP',
        'PERL5OPT',
        'BASH_ENV',
        'ENV',
        'GIT_SSH_COMMAND',
        'PATH',
        'HOME',
        'HTTPS_PROXY',
        'npm_config_prefix',
        'AWS_SECRET_ACCESS_KEY',
      ]) {
        await expect(start({ command: 'true', env: { [name]: '/tmp/evil' } })).rejects.toMatchObject({
          code: 'forbidden',
        })
      }
      vi.stubEnv('SVC_VAULT_KEY', canary)
      vi.stubEnv('OPENAI_API_KEY', canary)
      expect(await start({ command: 'env' })).not.toContain(canary)
    } finally {
      await scope.close(0)
    }
  })

  it('MCP stdio command injection: an interpreter with code on its line is a shell, whoever asks for it and under whatever name', async () => {
    await using tools = await openTools(['shell'])
    const agent = await tools.spawn(
      'server-starter',
      'shell = ["node *", "python3 *", "npx *", "git *", "find *", "./server *", "echo *"]',
    )
    for (const [command, args] of [
      ['node', ['-e', `require("fs").writeFileSync("${pwned()}", "")`]],
      ['node', ['--eval=1']],
      ['node', ['-p', '1']],
      ['node', ['--import', 'data:text/javascript,1']],
      ['node', ['-r', './x.js']],
      ['python3', ['-c', `open("${pwned()}", "w")`]],
      ['python3', ['-m', 'http.server']],
      ['sh', ['-c', `touch ${pwned()}`]],
      ['bash', ['-lc', 'true']],
      ['env', ['node', 'server.js']],
      ['git', ['-c', 'alias.x=!sh', 'x']],
      ['find', ['.', '-exec', 'sh', '-c', 'true', ';']],
      ['sudo', ['true']],
      ['xargs', ['sh']],
      ['../server', []],
    ] as const) {
      expect([command, args, (await tools.call(agent, 'process_start', { command, args })).failed]).toEqual([
        command,
        args,
        true,
      ])
      expect(
        (
          await tools.call(agent, 'shell_exec', {
            command: [command, ...args].map((word) => `'${word.replaceAll("'", '')}'`).join(' '),
          })
        ).failed,
      ).toBe(true)
    }
    expect((await tools.call(agent, 'shell_exec', { command: 'echo; node -e 1' })).failed).toBe(true)
    expect((await tools.call(agent, 'shell_exec', { command: 'echo fine' })).text).toContain('fine')
    await untouched()
  })

  it('MCP stdio command injection: nothing that is sent names a program', async () => {
    await using host = await startHost()
    const document = (await host.json('GET', '/api/openapi.json')).body as {
      paths: Record<string, Record<string, any>>
      components: { schemas: Record<string, any> }
    }
    // Whoever adds a field with such a name says here what it is, and tests that it starts nothing.
    const harmless: Readonly<Record<string, string>> = {}
    const telling =
      /^(command|cmd|program|executable|exec|binary|bin|args|argv|script|interpreter|entrypoint|spawn|shell|env|environment)$/i
    const found = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody }]) =>
        fieldsOf(requestBody?.content?.['application/json']?.schema, document.components.schemas)
          .filter((field) => telling.test(field))
          .map((field) => `${method.toUpperCase()} ${path} ${field}`),
      ),
    )
    expect(found.filter((field) => !(field in harmless))).toEqual([])
    // Keys of the configuration that say what is run or where it is looked for belong to whoever owns the files.
    for (const [key, value] of [
      ['plugins.shell.path', ['/tmp']],
      ['plugins.paths', ['/tmp']],
      ['plugins.watch', true],
      ['providers.claude-code.path', ['/tmp']],
      ['providers.claude-code.home', '/tmp'],
      ['providers.evil', { driver: 'claude-code', path: ['/tmp'] }],
      ['plugins.shell', { path: ['/tmp'] }],
      ['providers', { 'claude-code': { path: ['/tmp'] } }],
      ['plugins.webchat.page_dir', '/tmp'],
      ['mcp_servers', [{ name: 'x', command: 'sh' }]],
      ['plugins.mcp', { servers: [{ command: 'sh' }] }],
    ] as const) {
      const { status } = await host.json('POST', '/api/config/set', { key, value })
      expect([key, [400, 403].includes(status), status]).toEqual([key, true, status])
    }
    expect(await readFile(join(host.home, 'config.toml'), 'utf8').catch(() => '')).not.toMatch(/\/tmp|command/)
    // A manifest names servers; it does not say what they are.
    const { body } = await host.json('POST', '/api/agents', {
      manifest_toml: `name = "served"\nmodule = "exec:/bin/sh"\nmcp_servers = ["files"]\n[[mcp]]\nname = "files"\ncommand = "/bin/sh"\nargs = ["-c", "touch ${pwned()}"]\n[exec]\ncommand = "/bin/sh"\n`,
    })
    if (body.agent_id !== undefined)
      await host.json('POST', `/api/agents/${body.agent_id}/message`, { message: 'hello' })
    for (const method of ['POST', 'PUT'])
      for (const path of [
        '/api/mcp/servers',
        '/api/mcp/servers/files',
        '/api/mcp/servers/files/test',
        '/api/providers/evil',
        '/api/plugins/install',
        '/api/skills/install',
      ]) {
        const { status } = await host.json(method, path, {
          name: 'files',
          transport: 'stdio',
          command: '/bin/sh',
          args: ['-c', `touch ${pwned()}`],
          url: 'file:///bin/sh',
        })
        expect([path, [400, 403, 404, 405].includes(status), status]).toEqual([path, true, status])
      }
    await untouched()
  })
})

/** Names of all fields of a body, however deep. */
function fieldsOf(schema: any, all: Readonly<Record<string, any>>, depth = 0): readonly string[] {
  if (schema === undefined || depth > 8) return []
  const node = typeof schema.$ref === 'string' ? all[schema.$ref.split('/').at(-1)] : schema
  return [
    ...Object.entries(node?.properties ?? {}).flatMap(([name, inner]) => [name, ...fieldsOf(inner, all, depth + 1)]),
    ...[
      ...(node?.anyOf ?? []),
      ...(node?.oneOf ?? []),
      ...(node?.allOf ?? []),
      ...(node?.items ? [node.items] : []),
    ].flatMap((inner: unknown) => fieldsOf(inner, all, depth + 1)),
  ]
}
