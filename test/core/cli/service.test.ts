import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { renderUnit } from '../../../core/cli/service/unit.ts'
import { runHere } from './here.ts'

/** Notes how it was called; fails where a file `fail-<command>` says so; answers `show` with the file `show`. */
const fakeSystemctl = `#!/bin/sh
here="\${0%/*}"
echo "$*" >> "$here/calls"
if [ -f "$here/fail-$2" ]; then read -r reason < "$here/fail-$2"; echo "$reason" >&2; exit 1; fi
[ "$2" = show ] && while read -r line; do echo "$line"; done < "$here/show"
exit 0
`
let folder: string
let env: Record<string, string>
const bin = (name: string): string => join(folder, 'bin', name)
const unit = (name = 'svc'): string => join(folder, 'config/systemd/user', `${name}.service`)
const service = (...words: string[]) => runHere(['service', ...words], env)
const calls = (): string[] => (existsSync(bin('calls')) ? readFileSync(bin('calls'), 'utf8').trim().split('\n') : [])

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-service-'))
  await mkdir(join(folder, 'bin'))
  await writeFile(bin('systemctl'), fakeSystemctl)
  await chmod(bin('systemctl'), 0o755)
  await writeFile(bin('show'), 'MainPID=4711\nResult=success\nActiveState=active\nUnitFileState=enabled\n')
  env = {
    PATH: join(folder, 'bin'),
    HOME: folder,
    XDG_CONFIG_HOME: join(folder, 'config'),
    SVC_HOME: join(folder, 'home'),
    SVC_API_KEY: '',
  }
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('svc service install', () => {
  it('writes a unit, lets systemd read it, enables and starts it', async () => {
    const { code, stdout } = await service('install')
    expect([code, stdout]).toEqual([0, `svc.service is enabled and started; its unit is ${unit()}\n`])
    expect(calls()).toEqual(['--user show-environment', '--user daemon-reload', '--user enable --now svc.service'])
    const text = await readFile(unit(), 'utf8')
    for (const line of [
      `Environment="SVC_HOME=${join(folder, 'home')}"`.replaceAll('"', ''),
      'ExecReload=/bin/kill -HUP $MAINPID',
      'Restart=on-failure',
      'TimeoutStopSec=30',
      'UMask=0077',
      'WantedBy=default.target',
    ])
      expect(text.split('\n')).toContain(line)
    expect(text).toMatch(/^ExecStart=\/\S+ .*\/(svc\.js|main\.ts) start$/m)
    expect((await stat(unit())).mode & 0o077).toBe(0)
    expect(existsSync(join(folder, 'home'))).toBe(false)
  })

  it('--print shows the unit and changes nothing, without systemd too', async () => {
    await rm(bin('systemctl'))
    const { code, stdout, stderr } = await service('install', '--print', '--home', join(folder, 'other'))
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toContain(`SVC_HOME=${join(folder, 'other')}\n`)
    expect(existsSync(join(folder, 'config'))).toBe(false)
  })

  it('a second one has a name, a home and a configuration file of its own', async () => {
    await writeFile(join(folder, 'second.toml'), '')
    const words = ['--name', 'svc-test.service', '--home', join(folder, 'second'), '--json']
    const { code, stdout } = await service('install', ...words, '--config', join(folder, 'second.toml'))
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      { name: 'svc-test', unit_file: unit('svc-test'), home: join(folder, 'second'), enabled: true },
    ])
    expect(calls()).toContain('--user enable --now svc-test.service')
    expect(await readFile(unit('svc-test'), 'utf8')).toContain(` start --config ${join(folder, 'second.toml')}\n`)
  })

  it('the unit is in ~/.config when XDG_CONFIG_HOME is relative, which is no base directory', async () => {
    env['XDG_CONFIG_HOME'] = 'config'
    expect((await service('install')).code).toBe(0)
    expect(existsSync(join(folder, '.config/systemd/user/svc.service'))).toBe(true)
  })

  it('leaves more time for a stop than running work has to end', async () => {
    await mkdir(join(folder, 'home'))
    await writeFile(join(folder, 'home/config.toml'), '[plugins]\ndrain_ms = 120000\n')
    expect((await service('install', '--print')).stdout).toContain('TimeoutStopSec=145\n')
  })

  it('puts no secret into the unit and says where a key belongs', async () => {
    env['SVC_API_KEY'] = 'key-that-stays-here'
    const { code, stderr } = await service('install')
    expect(code).toBe(0)
    expect(stderr).toContain('SVC_API_KEY')
    expect(stderr).toContain(join(folder, 'home/config.toml'))
    expect(stderr).toContain('loginctl enable-linger')
    expect(`${await readFile(unit(), 'utf8')}${stderr}`).not.toContain('key-that-stays-here')
  })
})

describe('svc service install where something is already', () => {
  it('replaces its own unit, and no unit of somebody else', async () => {
    expect((await service('install')).code).toBe(0)
    await service('install', '--home', join(folder, 'moved'))
    expect(await readFile(unit(), 'utf8')).toContain(join(folder, 'moved'))
    await writeFile(unit(), '[Service]\nExecStart=/bin/true\n')
    for (const command of ['install', 'remove', 'status'])
      expect(await service(command)).toMatchObject({
        code: 5,
        stderr: expect.stringContaining('was not written by svc') as string,
      })
    expect(await readFile(unit(), 'utf8')).toBe('[Service]\nExecStart=/bin/true\n')
  })

  it('refuses a home in which a daemon runs that systemd did not start', async () => {
    await mkdir(join(folder, 'home'))
    const daemon = { pid: process.pid, listen_addr: '127.0.0.1:1', started_at: new Date().toISOString() }
    await writeFile(join(folder, 'home/daemon.json'), JSON.stringify(daemon))
    expect(await service('install')).toMatchObject({
      code: 7,
      stderr: expect.stringContaining(`process ${process.pid}`) as string,
    })
    expect(existsSync(unit())).toBe(false)
    await writeFile(bin('show'), `MainPID=${process.pid}\nActiveState=active\n`)
    expect((await service('install')).code).toBe(0)
  })
})

describe('what systemd refuses', () => {
  it('without systemd nothing is written, and the error says what to do', async () => {
    await rm(bin('systemctl'))
    const { code, stderr } = await service('install')
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/no systemd[^]*launchd[^]*svc start[^]*--print/) as string,
    ])
    expect(existsSync(join(folder, 'config'))).toBe(false)
  })

  it('where the bus of the user is missing nothing is written', async () => {
    await writeFile(bin('fail-show-environment'), 'Failed to connect to bus: No medium found\n')
    const { code, stderr } = await service('install')
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/No medium found[^]*container[^]*loginctl enable-linger/) as string,
    ])
    expect(existsSync(join(folder, 'config'))).toBe(false)
  })

  it.each(['daemon-reload', 'enable'])('what "%s" says reaches the operator', async (command) => {
    await writeFile(bin(`fail-${command}`), 'Unit is masked.\n')
    const { code, stderr } = await service('install', '--json')
    expect([code, stderr]).toEqual([1, expect.stringContaining('Unit is masked.') as string])
  })

  it('a unit that cannot be stopped stays', async () => {
    await service('install')
    await writeFile(bin('fail-disable'), 'Access denied\n')
    expect(await service('remove')).toMatchObject({ code: 1 })
    expect(existsSync(unit())).toBe(true)
  })
})

describe('svc service status and remove', () => {
  it('status says whether it is enabled and runs', async () => {
    await service('install')
    const { code, stdout } = await service('status', '--json')
    expect([code, JSON.parse(stdout)]).toEqual([
      0,
      { name: 'svc', unit_file: unit(), active: 'active', enabled: 'enabled', result: 'success', pid: 4711 },
    ])
    await writeFile(bin('show'), 'MainPID=0\nResult=exit-code\nActiveState=failed\nUnitFileState=enabled\n')
    const failed = await service('status')
    expect([failed.code, failed.stdout]).toEqual([3, expect.stringMatching(/failed \(exit-code\)[^]*none/) as string])
  })

  it('remove stops it and removes the unit', async () => {
    await service('install')
    expect(await service('remove')).toMatchObject({ code: 0 })
    expect(calls().slice(-2)).toEqual(['--user disable --now svc.service', '--user daemon-reload'])
    expect(existsSync(unit())).toBe(false)
  })

  it.each(['status', 'remove'])('%s of a unit that is not installed', async (command) => {
    expect(await service(command)).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('is not installed') as string,
    })
    expect(calls()).toEqual([])
  })
})

describe('bad input', () => {
  it.each(['', '../svc', 'a b', '-x', 'svc@1', 'x'.repeat(65), 'a\nb'])('no unit is named %j', async (name) => {
    for (const command of ['install', 'remove', 'status'])
      expect(await service(command, `--name=${name}`)).toMatchObject({ code: 2 })
    expect(calls()).toEqual([])
  })
  it('a home with a line break is refused', async () => {
    expect(await service('install', '--home', join(folder, 'a\n[Install]'))).toMatchObject({ code: 2 })
    expect(existsSync(join(folder, 'config'))).toBe(false)
  })
  it('a configuration that cannot be used', async () => {
    await mkdir(join(folder, 'home'))
    await writeFile(join(folder, 'home/config.toml'), 'listen_addr = 5\n')
    expect(await service('install')).toMatchObject({ code: 6 })
  })
})

describe('paths in the unit', () => {
  const text = renderUnit({
    name: 'svc',
    home: '/data/my "best" 100%/$HOME\\x',
    configFile: "/etc/it's $5/%h.toml",
    stopTimeoutSecs: 30,
    program: ['/opt/no de/bin/node', '/opt/a $b/svc.js'],
  })
  it('are quoted, with specifiers, variables and escapes taken literally', () => {
    expect(text.split('\n')).toContain(String.raw`Environment="SVC_HOME=/data/my \"best\" 100%%/$HOME\\x"`)
    expect(text.split('\n')).toContain(
      `ExecStart="/opt/no de/bin/node" "/opt/a $$b/svc.js" start --config "/etc/it's $$5/%%h.toml"`,
    )
  })
  it('systemd finds nothing wrong with the unit, where it is installed', async (context) => {
    const file = join(folder, 'svc.service')
    const program: [string, string] = [join(folder, 'no de %'), '/opt/a $b/svc.js']
    await writeFile(program[0], '#!/bin/sh\n', { mode: 0o755 })
    const unitText = renderUnit({
      name: 'svc',
      home: '/data/my "best" 100%/$HOME\\x',
      configFile: undefined,
      stopTimeoutSecs: 30,
      program,
    })
    await writeFile(file, unitText)
    const result = await promisify(execFile)('systemd-analyze', ['--user', '--man=no', 'verify', file], {
      env: { PATH: process.env['PATH'], HOME: folder, XDG_RUNTIME_DIR: dirname(file) },
    }).catch((error: unknown) => error as NodeJS.ErrnoException & { stderr: string })
    if ('code' in result && result.code === 'ENOENT') context.skip('systemd-analyze is not installed')
    expect(result).not.toBeInstanceOf(Error)
    expect(result.stderr).not.toContain('svc.service:')
  })
})
