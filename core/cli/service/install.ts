import { existsSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { commandLine } from '../../process/command-name.ts'
import { readDaemonFile } from '../../storage/lock.ts'
import { defineCommand, homeArgs } from '../command.ts'
import { exits, Failure } from '../failure.ts'
import { locateHome } from '../home-location.ts'
import type { HomeLocation } from '../home-location.ts'
import { loadSettings } from '../lazy.ts'
import { note, print, printJson } from '../output.ts'
import { readInstalledUnit } from './remove.ts'
import { programOfThis, renderUnit, serviceArgs, unitFile, unitName } from './unit.ts'
import { readUnitState, requireSystemd, systemctl } from './systemctl.ts'

/** What an orderly stop may take beyond the time that running work gets. */
const STOP_MARGIN_SECS = 25

export default defineCommand({
  description:
    'Let systemd start the daemon now and whenever this user logs in. Writes a user unit, which names Node, ' +
    'this installation and the home, and holds no secret. Installing again replaces it.',
  args: {
    ...homeArgs,
    ...serviceArgs,
    print: { type: 'boolean', description: 'Print the unit and change nothing' },
  },
  examples: [
    ['svc service install', 'start it now and at every login'],
    ['svc service install --print', 'print the unit and change nothing'],
    ['svc service install --name svc-test --home ~/.svc-test', 'a second daemon, with a port of its own in its home'],
  ],
  async run(args) {
    const name = unitName(args.name)
    const location = locateHome(args)
    const text = await describeUnit(name, location)
    if (args.print) {
      process.stdout.write(text)
      return exits.ok
    }
    const file = unitFile(name)
    const former = readInstalledUnit(file)
    await requireSystemd()
    await requireFreeHome(name, location.home)
    await writeUnit(file, text)
    await systemctl(['daemon-reload'])
    await systemctl(
      ['enable', '--now', `${name}.service`],
      `the unit stays in ${file}; \`journalctl --user -u ${name}\` says more`,
    )
    if (args.json) printJson({ name, unit_file: file, home: location.home, enabled: true })
    else print(`${name}.service is enabled and started; its unit is ${file}`)
    if (former !== undefined && former !== text)
      note(`A daemon that ran already takes the new unit with: systemctl --user restart ${name}`)
    for (const advice of adviceFor(location.home)) note(advice)
    return exits.ok
  },
})

async function describeUnit(name: string, location: HomeLocation): Promise<string> {
  const { config } = await loadSettings(location)
  return renderUnit({
    name,
    home: location.home,
    configFile: location.configFile === undefined ? undefined : resolve(location.configFile),
    stopTimeoutSecs: Math.ceil(config.plugins.drain_ms / 1000) + STOP_MARGIN_SECS,
    program: programOfThis(),
  })
}

/** Two daemons cannot share a home; one that systemd started for this unit goes on. */
async function requireFreeHome(name: string, home: string): Promise<void> {
  const daemon = readDaemonFile(home)
  if (daemon === undefined || (await readUnitState(name)).pid === daemon.pid) return
  throw new Failure(
    exits.inUse,
    `a daemon that was not started by ${name}.service runs in ${home} (process ${daemon.pid})`,
    `end it with ${commandLine('stop')}, then install again`,
  )
}

/** Replaced in one step: systemd may read it at any time. */
async function writeUnit(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  const fresh = `${file}.${process.pid}.tmp`
  await writeFile(fresh, text, { mode: 0o600 })
  await rename(fresh, file)
}

function adviceFor(home: string): readonly string[] {
  const advice: string[] = []
  // The service does not have the environment of this shell.
  const left = Object.keys(process.env).filter(
    (name) => name.startsWith('SVC_') && !['SVC_HOME', 'SVC_URL'].includes(name),
  )
  if (left.length > 0)
    advice.push(
      `The service does not get ${left.toSorted().join(', ')} of this shell, and the unit holds no secret: ` +
        `put the values into ${join(home, 'config.toml')}, keys into the vault where there is one`,
    )
  const { username } = userInfo()
  if (!existsSync(join('/var/lib/systemd/linger', username)))
    advice.push(`It ends when you log out unless you run: loginctl enable-linger ${username}`)
  return advice
}
