import { userInfo } from 'node:os'
import type { ProgramResult } from '../../process/operator-program.ts'
import { runSystemProgram } from '../../process/operator-program.ts'
import { exits, Failure } from '../failure.ts'
import { commandLine } from '../../process/command-name.ts'

/** How systemctl finds the folders and the bus of the user; the rest of the environment may hold secrets. */
const passed = /^(?:PATH|HOME|USER|LOGNAME|LANG|LC_\w+|XDG_\w+|DBUS_\w+)$/

async function run(words: readonly string[]): Promise<ProgramResult> {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => passed.test(name)))
  return await runSystemProgram('systemctl', ['--user', ...words], env)
}

/** Runs `systemctl --user`; its standard output. Throws a `Failure` that names what failed. */
export async function systemctl(words: readonly string[], advice?: string): Promise<string> {
  const line = `systemctl --user ${words.join(' ')}`
  const result = await run(words)
  if (result.code === 0) return result.stdout
  const reason = result.stderr.trim() || `it ended with ${result.code ?? 'a signal'}`
  throw new Failure(exits.failed, `\`${line}\` failed: ${reason}`, advice)
}

/** Throws unless the systemd of this user answers, before anything is changed. */
export async function requireSystemd(): Promise<void> {
  const result = await run(['show-environment'])
  if (result.code === 0) return
  if (result.code === 'not-found')
    throw new Failure(
      exits.failed,
      'this system has no systemd: there is no program "systemctl"',
      `let what starts programs here (launchd, a container) run ${commandLine('start')}; ` +
        `${commandLine('service install --print')} shows what the unit would hold`,
    )
  const { username, uid } = userInfo()
  throw new Failure(
    exits.failed,
    `the systemd of this user cannot be reached: ${result.stderr.trim() || `systemctl ended with ${result.code}`}`,
    `in a container let its command be ${commandLine('start')}; elsewhere log in as "${username}" or run ` +
      `\`sudo loginctl enable-linger ${username}\` with XDG_RUNTIME_DIR=/run/user/${uid}, or use a system-wide unit`,
  )
}

/** What systemd knows of a unit; every property is a text, empty when it knows none. */
export interface UnitState {
  /** `active`, `inactive`, `failed`, `activating` … */
  readonly active: string
  /** `enabled`, `disabled` … */
  readonly enabled: string
  readonly result: string
  readonly pid: number | undefined
}
export async function readUnitState(name: string): Promise<UnitState> {
  const output = await systemctl(['show', `${name}.service`, '--property=ActiveState,UnitFileState,Result,MainPID'])
  const facts = new Map<string, string>()
  for (const line of output.split('\n')) {
    const [name = '', value = ''] = line.split(/=(.*)/, 2)
    facts.set(name, value)
  }
  return {
    active: facts.get('ActiveState') ?? '',
    enabled: facts.get('UnitFileState') ?? '',
    result: facts.get('Result') ?? '',
    pid: Number(facts.get('MainPID')) || undefined,
  }
}
