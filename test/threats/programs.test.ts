import { spawn as startProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, open, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createSocketServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { createOutbound } from '../../core/net/outbound.ts'
import type { OutboundSettings } from '../../core/net/outbound.ts'
import { openProxy } from '../../core/net/proxy.ts'
import type { SpawnRequest } from '../../core/process/child.ts'
import type { DaemonFolders } from '../../core/process/folders.ts'
import { createLauncher } from '../../core/process/launcher.ts'
import type { Launcher } from '../../core/process/launcher.ts'
import { createSpawn, works } from '../../core/process/spawn.ts'
import { Scope } from '../../core/scope/scope.ts'
import { startHost } from '../support/host.ts'
import { openTools } from '../support/tool-stage.ts'
import type { Json } from '../support/json.ts'

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
  it('MCP stdio command injection: only the named program starts, nothing hidden in its name', async () => {
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
      // The name is a name: no shell reads it, no way leads up, and what lies in the folder is not taken for a program
      // of the system.
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
      // What a definition says of the environment cannot make a loader or an interpreter run something, nor move where
      // programs are found.
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
      paths: Record<string, Record<string, Json>>
      components: { schemas: Record<string, Json> }
    }
    // Whoever adds a field with such a name says here what it is, and tests that it starts nothing.
    const harmless: Readonly<Record<string, string>> = {
      'POST /api/agents/{id}/commands command': 'a word of a conversation, such as /new',
      // Only the API key may add a server, and its program is confined (test/plugins/mcp/added.test.ts).
      ...Object.fromEntries(
        ['POST /api/mcp/servers', 'POST /api/mcp/servers/test', 'PUT /api/mcp/servers/{name}'].flatMap((route) =>
          ['command', 'args', 'env'].map((field) => [`${route} ${field}`, 'of a server that is confined']),
        ),
      ),
    }
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
      ['plugins.shell.read', ['/srv']],
      ['plugins.shell.write', ['/srv']],
      ['plugins.shell.unconfined', true],
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
      for (const [path, sent] of [
        ['message', { message: 'hello' }],
        ['commands', { command: `/bin/sh -c "touch ${pwned()}"` }],
        ['commands', { command: 'sh', args: `-c "touch ${pwned()}"` }],
      ] as const)
        await host.json('POST', `/api/agents/${body.agent_id}/${path}`, sent)
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

/** A folder beside each other of everything a program must keep its hands off, and a workspace. */
interface Ground {
  readonly base: string
  readonly workspace: string
  readonly plugins: string
  readonly folders: DaemonFolders
}
async function layOut(): Promise<Ground> {
  // Not in /tmp, of which a program has one of its own.
  const base = await realpath(await mkdtemp('/var/tmp/svc-ground-'))
  const [home, plugins, other] = [join(base, 'home'), join(base, 'plugins'), join(base, 'other')]
  const workspace = join(home, 'data', 'workspaces', 'a')
  await Promise.all([workspace, plugins, other].map((path) => mkdir(path, { recursive: true })))
  await Promise.all([
    writeFile(join(home, 'vault.key'), 'the-key'),
    writeFile(join(plugins, 'plugin.ts'), 'the-plugin'),
    writeFile(join(other, 'diary'), 'the-diary'),
  ])
  return { base, workspace, plugins, folders: { hidden: [home], code: [{ path: plugins, what: 'plugins.paths' }] } }
}

const levels = ['bubblewrap', 'landlock', 'landlock without namespaces'] as const
/** The machine as it is, without bubblewrap, and as a container that forbids namespaces. */
function launcherOf(level: (typeof levels)[number]): () => Promise<Launcher> {
  const missing = level === 'bubblewrap' ? [] : level === 'landlock' ? ['/bwrap'] : ['/bwrap', '/unshare']
  const launcher = createLauncher(
    async (command) => !command.some((word) => missing.some((each) => word.endsWith(each))) && works(command),
  )
  return () => launcher
}

describe.each(levels)('threats: a program of an agent, with %s', (level) => {
  let ground: Ground
  let scope: Scope
  const launcher = launcherOf(level)
  beforeAll(async () => {
    ground = await layOut()
    scope = new Scope('attacks')
    expect((await launcher()).isolation.level).toBe(level.split(' ')[0])
  })
  afterAll(async () => {
    await scope.close(0)
    await rm(ground.base, { recursive: true, force: true })
  })
  const run = async (script: string, args: readonly string[] = [], more: Partial<SpawnRequest> = {}) => {
    const child = await createSpawn(scope, { folders: ground.folders, launcher }).start({
      command: 'sh',
      args: ['-c', script, 'sh', ...args],
      cwd: ground.workspace,
      timeoutMs: 20_000,
      ...more,
    })
    const exit = await child.ended
    return { ...exit, text: child.read().text }
  }
  /** Nothing changed outside of the workspace. */
  const unharmed = async (): Promise<void> => {
    expect(await readdir(ground.plugins)).toEqual(['plugin.ts'])
    expect(await readFile(join(ground.plugins, 'plugin.ts'), 'utf8')).toBe('the-plugin')
    expect(await readFile(join(ground.base, 'home', 'vault.key'), 'utf8')).toBe('the-key')
    expect((await readdir(ground.base)).toSorted()).toEqual(['home', 'other', 'plugins'])
  }

  it('writes to its workspace and nowhere that code or configuration is loaded from', async () => {
    const places = [
      ground.plugins,
      ground.base,
      join(ground.base, 'home'),
      join(ground.workspace, '..'),
      '/etc',
      '/usr/local/bin',
      '/usr/lib',
      '/root',
      '/srv',
      '/var/tmp',
      '/var/spool/cron',
      join(process.cwd(), 'dist'),
      process.cwd(),
    ]
    const { text } = await run(
      'echo mine > own && cat own; for d do if (: > "$d/svc-attack") 2>/dev/null; then echo "wrote $d"; fi; done; echo end',
      places,
    )
    expect(text).toBe('mine\nend\n')
    expect(places.filter((place) => existsSync(join(place, 'svc-attack')))).toEqual([])
    await unharmed()
  })

  it('sees no home, no secret and no file of somebody else', async () => {
    const { text } = await run(
      'ls "$1"/home "$1"/other /root /home /srv /var /etc/ssh; cat "$1"/home/vault.key "$1"/other/diary /etc/shadow /etc/gshadow; ls ..; echo end',
      [ground.base],
    )
    expect(text).not.toMatch(/the-key|the-diary|root:|\.ssh|\.bashrc|diary\n/)
    expect(text).toContain('end\n')
  })

  it('attack 1: a symbolic link in the workspace leads nowhere', async () => {
    const { text } = await run(
      'ln -s "$1/plugins" p; ln -s "$1/home/vault.key" k; : > p/evil.ts; echo x > p/plugin.ts; echo x > k; cat k p/plugin.ts; echo end',
      [ground.base],
    )
    expect(text).not.toMatch(/the-key|the-plugin/)
    await unharmed()
  })

  it('attack 2: a hard link brings no file into the workspace, and a renamed folder takes none away', async () => {
    const { text } = await run(
      'ln "$1/plugins/plugin.ts" h; ln "$1/home/vault.key" v; mv "$1/plugins" "$1/taken"; mv "$1/home" .; ln /usr/bin/env e && echo linked; cat h v; echo end',
      [ground.base],
    )
    expect(text).not.toMatch(/the-key|the-plugin|linked/)
    await unharmed()
  })

  it('attack 3: no process is a way to the files or the memory of another', async () => {
    const { text } = await run(
      `for p in 1 $PPID "$2"; do cat "/proc/$p/root$1/home/vault.key" "/proc/$p/cwd/vault.key"; ls "/proc/$p/fd/" && echo "fds-$p"; (exec 9<"/proc/$p/mem") && echo memory; : > "/proc/$p/root$1/plugins/evil.ts"; done; kill -0 "$2" && echo signalled; echo end`,
      [ground.base, String(process.pid)],
    )
    expect(text).not.toMatch(/the-key|signalled/)
    expect(text).not.toContain(`fds-${process.pid}`)
    if (level !== 'bubblewrap') expect(text).not.toContain('memory\n')
    await unharmed()
  })

  it('attack 4: no socket of the machine answers, by its file, its abstract name or its port', async () => {
    const file = join(ground.base, 'docker.sock')
    const abstract = `svc-attack-${process.pid}-${level.length}`
    let met = 0
    const servers = [createSocketServer(), createSocketServer(), createSocketServer()]
    for (const server of servers) server.on('connection', (socket) => void (met++, socket.destroy()))
    await Promise.all([
      once(servers[0]!.listen(file), 'listening'),
      once(servers[1]!.listen(`\0${abstract}`), 'listening'),
      once(servers[2]!.listen(0, '127.0.0.1'), 'listening'),
    ])
    const { port } = servers[2]!.address() as AddressInfo
    const addresses = Object.values(networkInterfaces()).flatMap((rows) =>
      (rows ?? []).flatMap(({ family, address }) => (family === 'IPv4' ? [address] : [])),
    )
    const { text } = await run(
      `perl -e 'use Socket; my ($f, $a, $p, @ips) = @ARGV;
        for (pack_sockaddr_un($f), pack("Sa*", 1, "\\0$a")) { socket(my $s, 1, 1, 0) or next; connect($s, $_) and print "met\\n"; }
        for (@ips) { socket(my $s, 2, 1, 0) or next; connect($s, pack_sockaddr_in($p, inet_aton($_))) and print "met $_\\n"; }
        socket(my $v, 40, 1, 0) and print "vsock\\n"; socket(my $n, 17, 3, 0) and print "packet\\n";' "$@"; echo end`,
      [file, abstract, String(port), '127.0.0.1', '0.0.0.0', ...addresses],
    )
    expect(text).toBe('end\n')
    expect(met).toBe(0)
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  })

  it('attack 5: it types into no terminal, and makes no namespace or mount in which it would be more', async () => {
    const { text } = await run(
      `perl -e 'my $c = "x"; ioctl(STDIN, 0x5412, $c) and print "typed\\n"; print "refused\\n" if $! == 1; open(T, "+<", "/dev/tty") and print "terminal\\n";'; unshare -Urm sh -c 'mount -t tmpfs x /usr && echo mounted; mount --bind "$0" /usr/local && echo mounted' "$1"; perl -e 'syscall(425, 8, 0) >= 0 and print "ring\\n"'; echo end`,
      [ground.workspace],
    )
    expect(text).toContain('refused\n')
    expect(text).not.toMatch(/typed|terminal|mounted|ring/)
  })

  it('attack 6: a folder that was opened to it and leads elsewhere now is refused', async () => {
    const shared = join(ground.base, 'other', 'shared')
    await mkdir(shared)
    expect((await run('echo x > "$1/f" && cat "$1/f"', [shared], { write: [shared] })).text).toBe('x\n')
    await rm(shared, { recursive: true })
    await symlink(ground.plugins, shared)
    await expect(run('true', [], { write: [shared] })).rejects.toMatchObject({ code: 'forbidden' })
    await symlink(join(ground.base, 'home'), join(ground.base, 'other', 'link'))
    await expect(run('true', [], { read: [join(ground.base, 'other', 'link')] })).rejects.toMatchObject({
      code: 'forbidden',
    })
    await rm(shared)
  })

  it('attack 7: its folder for temporary files is no way out, whatever it was made into', async () => {
    await run('rm -rf .tmp; ln -s "$1" .tmp', [ground.plugins])
    const { text } = await run('echo x > "$TMPDIR/evil.ts"; echo x > .tmp/plugin.ts; echo end')
    expect(text).toContain('end\n')
    await unharmed()
    await rm(join(ground.workspace, '.tmp'))
  })

  it('attack 8: nothing that the daemon was started with is open to it', async () => {
    const secret = await open(join(ground.base, 'home', 'vault.key'), 'r+')
    const code = `
      import { createSpawn, works } from '${process.cwd()}/core/process/spawn.ts'
      import { createLauncher } from '${process.cwd()}/core/process/launcher.ts'
      import { Scope } from '${process.cwd()}/core/scope/scope.ts'
      const missing = ${JSON.stringify(level === 'bubblewrap' ? [] : ['/bwrap'])}
      const launcher = createLauncher(async (command) => !command.some((word) => missing.some((each) => word.endsWith(each))) && works(command))
      const child = await createSpawn(new Scope('x'), { launcher: () => launcher }).start({ command: 'sh', args: ['-c', 'for f in /proc/self/fd/*; do readlink $f; done; cat /proc/self/fd/40; echo end'], cwd: '${ground.workspace}' })
      await child.ended
      process.stdout.write(child.read().text)`
    const stdio = Array.from({ length: 41 }, (_, at) => (at === 1 ? 'pipe' : at === 40 ? secret.fd : 'ignore'))
    const daemon = startProcess(
      process.execPath,
      ['--conditions=svc-source', '--input-type=module', '-e', code],
      // The tuple of the three usual ones is not told of longer lists.
      { stdio: stdio as ('pipe' | 'ignore' | number)[], cwd: process.cwd() },
    )
    let text = ''
    daemon.stdout!.on('data', (bytes: Buffer) => void (text += bytes.toString()))
    await once(daemon, 'close')
    await secret.close()
    expect(text).toContain('end')
    expect(text).not.toMatch(/the-key|vault\.key/)
  })

  it('attack 13: what moves from process to process while it is looked for dies with it', async () => {
    const mark = `73.${process.pid}${level.length}`
    await writeFile(
      join(ground.workspace, 'move.sh'),
      `[ "$1" -gt 0 ] && { setsid sh move.sh $(($1 - 1)) "$2" & exit; }\nexec sleep "$2"`,
    )
    for (let round = 0; round < 5; round++) {
      await run(`sh move.sh 20 ${mark}`)
      expect(await running(mark)).toEqual([])
    }
    await rm(join(ground.workspace, 'move.sh'))
  })

  it('attack 9: what it leaves in the background dies with it, and with a daemon that is killed', async () => {
    const mark = `71.${process.pid}${level.length}`
    await run(`setsid sleep ${mark} & (setsid sh -c 'sleep ${mark}' &) & echo started`)
    expect(await running(mark)).toEqual([])
    const code = `
      import { createSpawn, works } from '${process.cwd()}/core/process/spawn.ts'
      import { createLauncher } from '${process.cwd()}/core/process/launcher.ts'
      import { Scope } from '${process.cwd()}/core/scope/scope.ts'
      const missing = ${JSON.stringify(level === 'bubblewrap' ? [] : ['/bwrap'])}
      const launcher = createLauncher(async (command) => !command.some((word) => missing.some((each) => word.endsWith(each))) && works(command))
      const onOutput = () => console.log('runs')
      await createSpawn(new Scope('x'), { launcher: () => launcher }).start({ command: 'sh', args: ['-c', 'setsid sleep ${mark} & echo runs; sleep ${mark}'], cwd: '${ground.workspace}', background: true, timeoutMs: 60000, onOutput })
      setInterval(() => undefined, 1000)`
    const daemon = startProcess(process.execPath, ['--conditions=svc-source', '--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'ignore'],
      cwd: process.cwd(),
    })
    await once(createInterface(daemon.stdout), 'line')
    daemon.kill('SIGKILL')
    await once(daemon, 'exit')
    if (level !== 'landlock without namespaces') return eventually(async () => expect(await running(mark)).toEqual([]))
    // Nothing holds it together there, and the operator is told so.
    for (const pid of await running(mark)) killIfThere(Number(pid))
    expect((await launcher()).isolation.gaps).toContain('programs go on when the daemon is killed')
  })

  it('attack 11: a link on the way to code lies in no folder it may write', async () => {
    const shared = join(ground.base, 'other', 'releases')
    await mkdir(shared)
    await symlink(ground.plugins, join(shared, 'current'))
    const folders = { ...ground.folders, code: [{ path: join(shared, 'current'), what: 'plugins.paths', loads: true }] }
    await expect(
      createSpawn(scope, { folders, launcher }).start({ command: 'true', cwd: ground.workspace, write: [shared] }),
    ).rejects.toMatchObject({ code: 'forbidden' })
    await rm(shared, { recursive: true })
  })

  it('attack 12: a program of the operator that an agent directs changes no code and sees no secret', async () => {
    const { text } = await run(
      'echo x > "$1/other/answer" && echo wrote; ls "$1/plugins"; (: > "$1/plugins/evil.ts"; echo x > "$1/plugins/plugin.ts"; rm -rf "$1/plugins"; mv "$1/plugins" "$1/taken") 2>/dev/null; cat "$1/home/vault.key"; echo end',
      [ground.base],
      { trust: 'operator' },
    )
    expect(text).toContain('wrote\nplugin.ts\n')
    expect(text).toContain('end\n')
    expect(text).not.toContain('the-key')
    await rm(join(ground.base, 'other', 'answer'))
    await unharmed()
  })

  it('attack 10: a workspace that lies where code is loaded from runs nothing', async () => {
    const inside = join(ground.plugins, 'workspace')
    await mkdir(inside)
    await expect(run('true', [], { cwd: inside })).rejects.toMatchObject({ code: 'forbidden' })
    await rm(inside, { recursive: true })
    // The home of whoever owns the daemon is no such place because a provider signs in there.
    const folders = { ...ground.folders, code: [{ path: ground.base, what: 'providers.claude-code.home' }] }
    const child = await createSpawn(scope, { folders, launcher }).start({ command: 'true', cwd: ground.workspace })
    expect(await child.ended).toMatchObject({ code: 0 })
  })
})

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ESRCH') throw error
  }
}
async function running(argument: string): Promise<readonly string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')))
  return pids.filter((_, at) => lines[at]?.split('\0').includes(argument))
}

/** One request of a program through its proxy, word for word, and the answer. */
const throughProxy = `use Socket; $/ = undefined; my $request = $ARGV[0]; $request =~ s/\\|/\\r\\n/g;
  socket(my $s, 2, 1, 0) or die "no network"; connect($s, pack_sockaddr_in(3128, INADDR_LOOPBACK)) or die "no proxy";
  syswrite $s, $request; shutdown($s, 1) if $ARGV[1]; print <$s>;`

describe('threats: the network of programs', () => {
  const settings = (allow: readonly string[]): OutboundSettings => ({
    allow,
    headersTimeoutMs: 2000,
    idleTimeoutMs: 2000,
    maxBytes: 65_536,
    maxRedirects: 3,
    connectTimeoutMs: 1000,
  })

  it('the port of the daemon is refused by every name, also to what is allowed everything', async () => {
    let met = 0
    const server = createServer((_, response) => {
      met++
      response.end('reached')
    })
    await once(server.listen(0, '0.0.0.0'), 'listening')
    const { port } = server.address() as AddressInfo
    const away = createServer((_, response) => {
      response.writeHead(307, { location: `http://inside.test:${port}/` }).end()
    })
    await once(away.listen(0, '127.0.0.1'), 'listening')
    const allow = settings(['0.0.0.0/0', '::/0', 'inside.test', 'localhost'])
    await using outbound = createOutbound({
      settings: () => allow,
      own: { ports: () => new Set([port]), names: () => ['svc.example.test'], addresses: () => [] },
      resolve: (name) =>
        Promise.resolve([{ address: name === 'mapped.test' ? '::ffff:127.0.0.1' : '127.0.0.1', family: 4 }]),
    })
    const addresses = Object.values(networkInterfaces()).flatMap((rows) => (rows ?? []).map(({ address }) => address))
    const urls = [
      '127.0.0.1',
      'localhost',
      'localhost.',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0.0.0.0',
      '0',
      '[::]',
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::ffff:0.0.0.0]',
      'inside.test',
      'mapped.test',
      '127.9.9.9',
      ...addresses.filter((each) => !each.includes('%')).map((each) => (each.includes(':') ? `[${each}]` : each)),
    ].map((host) => `http://${host}:${port}/api/config/set`)
    for (const url of [
      ...urls,
      'https://svc.example.test/',
      `http://127.0.0.1:${(away.address() as AddressInfo).port}/`,
    ])
      for (const fetch of [outbound.fetch, outbound.forOperator()])
        await expect(
          fetch(url, { method: 'POST', body: '{}' }).then((answer) => answer.text()),
          url,
        ).rejects.toMatchObject({ code: 'forbidden', message: expect.stringContaining('the daemon itself') })
    for (const url of urls)
      await expect(outbound.connect(new URL(url), AbortSignal.timeout(5000)), url).rejects.toMatchObject({
        code: 'forbidden',
      })
    expect(met).toBe(0)
    await Promise.all([server, away].map((each) => new Promise((resolve) => each.close(resolve))))
  })

  it('a program reaches what its patterns and the outbound rules permit, and nothing beside', async () => {
    const seen: (string | undefined)[] = []
    const server = createServer((request, response) => {
      seen.push(request.headers.host)
      request.resume().once('end', () => response.end('reached'))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const fixed = settings(['allowed.test'])
    await using outbound = createOutbound({
      settings: () => fixed,
      resolve: (name) => Promise.resolve([{ address: name === 'private.test' ? '10.0.0.1' : '127.0.0.1', family: 4 }]),
    })
    const scope = new Scope('network')
    const spawn = createSpawn(scope, {
      openProxy: (admits) =>
        openProxy({
          outbound,
          admits,
          settings: { maxConnections: 16, maxTotalConnections: 64, idleTimeoutMs: 5000 },
        }),
    })
    const asked: string[] = []
    const ask = async (request: string): Promise<string> => {
      const child = await spawn.start({
        command: 'perl',
        args: ['-e', throughProxy, request],
        cwd: folder,
        network: (url) => {
          asked.push(url.host)
          if (!/^(allowed|private|other)\.test$|^\d|^\[/.test(url.hostname)) throw new Error('not this one')
        },
      })
      await child.ended
      return child.read().text
    }
    const get = (host: string, more = ''): Promise<string> =>
      ask(`GET http://${host}/ HTTP/1.1|Host: ${host}|Connection: close|${more}|`)
    expect(await get(`allowed.test:${port}`)).toMatch(/^HTTP\/1\.1 200 [^]*reached/)
    expect(
      await ask(`CONNECT allowed.test:${port} HTTP/1.1||GET /inner HTTP/1.1|Host: inner|Connection: close||`),
    ).toMatch(/200 Connection established[^]*reached/)
    // The host that was checked is the host that is asked for.
    expect(await ask(`GET http://allowed.test:${port}/ HTTP/1.1|Host: other.test|Connection: close||`)).toMatch(/ 200 /)
    expect(seen).toEqual([`allowed.test:${port}`, 'inner', `allowed.test:${port}`])
    seen.length = 0
    for (const host of [
      `127.0.0.1:${port}`,
      `[::ffff:127.0.0.1]:${port}`,
      `other.test:${port}`,
      'private.test',
      '169.254.169.254',
      'metadata.google.internal',
      '10.0.0.1',
      `unknown.test:${port}`,
      'allowed.test:25',
    ]) {
      expect(await get(host), host).toMatch(/^HTTP\/1\.1 (?:403|502) /)
      expect(await ask(`CONNECT ${/:\d+$/.test(host) ? host : `${host}:80`} HTTP/1.1||`), host).toMatch(
        /^HTTP\/1\.1 (?:403|502) /,
      )
    }
    for (const request of [
      `GET / HTTP/1.1|Host: allowed.test:${port}||`,
      `GET ftp://allowed.test/ HTTP/1.1|Host: allowed.test||`,
      `CONNECT user@allowed.test:${port} HTTP/1.1||`,
      `GET http://user:word@allowed.test:${port}/ HTTP/1.1|Host: allowed.test:${port}||`,
      `GET http://allowed.test:${port}/ HTTP/1.1|Host: a|Content-Length: 1|Transfer-Encoding: chunked||0||`,
    ])
      expect(await ask(request), request).toMatch(/^HTTP\/1\.1 (?:400|403) /)
    expect(seen).toEqual([])
    expect(asked).toContain('169.254.169.254')
    await scope.close(0)
    await new Promise((resolve) => server.close(resolve))
  })

  it('a daemon without a key is changed neither by a program nor by web_fetch, and the audit log says who tried', async () => {
    await using tools = await openTools(['shell', 'web', 'settings'], {
      listen: true,
      config: { outbound: { allow: ['127.0.0.0/8', 'localhost'] } },
    })
    const { host } = new URL(tools.host.url)
    const agent = await tools.spawn('networker', 'shell = ["*"]\nnetwork = ["*"]')
    const body = JSON.stringify({ key: 'log_level', value: 'silent' })
    const before = (await tools.host.json('GET', '/api/config')).body.log_level
    const request = `POST http://${host}/api/config/set HTTP/1.1|Host: ${host}|Content-Type: application/json|Content-Length: ${body.length}|Connection: close||${body}`
    for (const tool of ['shell_exec', 'process_start']) {
      const { text } = await tools.call(agent, tool, {
        command: `perl -e '${throughProxy}' '${request}'`,
      })
      if (tool === 'shell_exec') expect(text).toMatch(/403 Forbidden[^]*the daemon itself listens there/)
    }
    for (const url of [`http://${host}/api/config/set`, `http://localhost:${host.split(':')[1]}/api/config/set`])
      expect(
        await tools.call(agent, 'web_fetch', {
          url,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        }),
      ).toMatchObject({ failed: true, text: expect.stringContaining('the daemon itself') })
    expect((await tools.host.json('GET', '/api/config')).body.log_level).toBe(before)
    expect((await tools.audit('network_access')).join('\n')).toContain(`perl to ${host}`)
  })

  it('a program that runs loses the network, and its right to run, with the grant', async () => {
    let open = 0
    const server = createSocketServer((socket) => {
      open++
      socket.on('error', () => undefined).once('close', () => open--)
      socket.write('hello')
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    await using tools = await openTools(['shell'], { config: { outbound: { allow: ['127.0.0.0/8'] } } })
    const manifest = (capabilities: string): string =>
      `name = "holder"\n[capabilities]\ntools = ["*"]\n${capabilities}\n`
    const agent = await tools.spawn('holder', 'shell = ["*"]\nnetwork = ["*"]')
    const tunnel = async (): Promise<string> => {
      const { process_id } = await tools.json(agent, 'process_start', {
        command: 'perl',
        args: [
          '-e',
          `${throughProxy.replace('print <$s>;', '')} sysread $s, my $x, 99; sysread $s, $x, 99 while 1 > 0 && sysread $s, $x, 99; sleep 60`,
          `CONNECT 127.0.0.1:${port} HTTP/1.1||`,
        ],
      })
      await eventually(() => expect(open).toBe(1))
      return process_id
    }
    const change = async (capabilities: string): Promise<void> => {
      const { status, body } = await tools.host.json('PUT', `/api/agents/${agent}/update`, {
        manifest_toml: manifest(capabilities),
      })
      expect([status, body]).toEqual([200, body])
    }
    const process_id = await tunnel()
    await change('shell = ["*"]\nnetwork = ["other.test"]')
    await eventually(() => expect(open).toBe(0))
    expect((await tools.json(agent, 'process_poll', { process_id })).running).toBe(true)
    expect((await tools.audit('capability_check')).join('\n')).toContain(`denied: perl to 127.0.0.1:${port}`)
    await change('shell = ["true"]\nnetwork = ["other.test"]')
    await eventually(async () => expect((await tools.json(agent, 'process_poll', { process_id })).running).toBe(false))
    expect(tools.host.app.daemon.metrics()).toContain('svc_program_connections_total{outcome="revoked"} 1')
    await new Promise((resolve) => server.close(resolve))
  })

  it('a program of an agent adds no plugin to a folder of plugins, and no configuration makes that folder writable', async () => {
    const plugins = await realpath(await mkdtemp(join('/var/tmp', 'svc-plugins-')))
    {
      await using tools = await openTools(['shell'], { config: { plugins: { paths: [plugins] } } })
      const agent = await tools.spawn('installer', 'shell = ["*"]')
      const { text } = await tools.call(agent, 'shell_exec', {
        command: `sh -c 'echo "export default {}" > p.ts; cp p.ts ${plugins}/; ls ${tools.host.home}; cat ${tools.host.home}/vault.key; echo end'`,
      })
      expect(text).toContain('end')
      expect(text).not.toMatch(/exit code 0\n(?!cp|ls|cat)/)
      expect(await readdir(plugins)).toEqual([])
    }
    for (const [key, value, why] of [
      ['write', plugins, 'plugins.paths'],
      ['write', join(plugins, 'below'), 'plugins.paths'],
      ['write', tmpdir(), 'plugins.paths'],
      ['write', process.cwd(), 'svc itself'],
      ['write', '/usr/local/bin', 'belongs to the system'],
      ['write', '/', 'leads to'],
      ['read', '/run', 'leads to'],
      ['read', '/proc/1/root', 'leads to'],
    ] as const) {
      await using host = await startHost({
        listen: false,
        memory: true,
        plugins: ['audit', 'agents', 'files', 'shell'],
        config: { plugins: { paths: [plugins], shell: { [key]: [value] } } },
      })
      const shell = host.app.daemon.plugins().find(({ name }) => name === 'shell')
      expect([key, value, shell?.state]).toEqual([key, value, 'failed'])
      expect(shell?.error).toContain(`plugins.shell.${key}: ${value} may not be opened`)
      if (value !== tmpdir()) expect(shell?.error).toContain(why)
      host.defects()
    }
    await rm(plugins, { recursive: true })
  })

  it('only the folders that the file opens to programs are open to them', async () => {
    const base = await realpath(await mkdtemp(join('/var/tmp', 'svc-opened-')))
    const [read, write, closed] = ['read', 'write', 'closed'].map((name) => join(base, name)) as [
      string,
      string,
      string,
    ]
    for (const path of [read, write, closed]) {
      await mkdir(path)
      await writeFile(join(path, 'there'), 'to read')
    }
    {
      await using tools = await openTools(['shell'], {
        config: { plugins: { shell: { read: [read], write: [write] } } },
      })
      const agent = await tools.spawn('reader', 'shell = ["*"]')
      const { text } = await tools.call(agent, 'shell_exec', {
        command: `sh -c 'cat ${read}/there ${write}/there; echo x > ${write}/new; echo x > ${read}/new; cat ${closed}/there; echo x > ${closed}/new; echo end'`,
      })
      expect(text).toContain('to readto read')
      expect(text).toContain('end')
      expect(await Promise.all([read, write, closed].map((path) => readdir(path)))).toEqual([
        ['there'],
        ['new', 'there'],
        ['there'],
      ])
    }
    await rm(base, { recursive: true })
  })

  it('what a program writes below /tmp is its own, and nothing of others is to be seen there', async () => {
    const name = `svc-private-${process.pid}`
    await writeFile(join('/tmp', `${name}-host`), 'of the host')
    await using tools = await openTools(['shell'])
    const agent = await tools.spawn('writer', 'shell = ["*"]')
    const { text } = await tools.call(agent, 'shell_exec', {
      command: `sh -c 'echo mine > /tmp/${name}; cat /tmp/${name} /tmp/${name}-host; echo end'`,
    })
    expect(text).toContain('mine')
    expect(text).toContain('end')
    expect(text).not.toContain('of the host')
    expect(existsSync(join('/tmp', name))).toBe(false)
    await rm(join('/tmp', `${name}-host`))
  })

  it('a page folder that is written relative to where the daemon was started is as closed as an absolute one', async () => {
    // Not where homes lie, which may be below `/dev`: that is closed for another reason.
    const page = await realpath(await mkdtemp(join('/var/tmp', 'svc-page-')))
    await using host = await startHost({
      listen: false,
      memory: true,
      plugins: ['audit', 'agents', 'files', 'shell'],
      config: { plugins: { webchat: { page_dir: relative(process.cwd(), page) }, shell: { write: [page] } } },
    })
    const shell = host.app.daemon.plugins().find(({ name }) => name === 'shell')
    expect(shell?.error).toContain(`code or configuration is loaded from ${page} (plugins.webchat.page_dir)`)
    host.defects()
    await rm(page, { recursive: true })
  })
})

/** Names of all fields of a body, however deep. */
function fieldsOf(schema: Json, all: Readonly<Record<string, Json>>, depth = 0): readonly string[] {
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
