import { existsSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { commandLine } from '../../process/command-name.ts'
import { defineCommand } from '../command.ts'
import { exits, Failure } from '../failure.ts'
import { print, printJson } from '../output.ts'
import { serviceArgs, UNIT_MARK, unitFile, unitName } from './unit.ts'
import { requireSystemd, systemctl } from './systemctl.ts'

export default defineCommand({
  description: 'Stop the daemon that systemd started, and remove its unit. The home and its data stay.',
  args: { ...serviceArgs, json: { type: 'boolean', description: 'Print JSON' } },
  examples: [['svc service remove', 'end it and start it no more']],
  async run(args) {
    const name = unitName(args.name)
    const file = unitFile(name)
    if (readInstalledUnit(file) === undefined)
      throw new Failure(exits.notFound, `${name}.service is not installed: there is no ${file}`, 'nothing was changed')
    await requireSystemd()
    await systemctl(['disable', '--now', `${name}.service`], `the unit stays in ${file}`)
    await rm(file)
    await systemctl(['daemon-reload'])
    if (args.json) printJson({ name, unit_file: file, removed: true })
    else print(`${name}.service is stopped and removed; the home stays as it is`)
    return exits.ok
  },
})

/** The unit in this file, `undefined` when there is none. Throws for one that somebody else wrote. */
export function readInstalledUnit(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const text = readFileSync(file, 'utf8')
  if (text.startsWith(UNIT_MARK)) return text
  throw new Failure(
    exits.refused,
    `${file} was not written by svc and is left as it is`,
    'choose another name with --name, or move the file away',
  )
}

export function notInstalled(name: string, file: string): Failure {
  return new Failure(
    exits.notFound,
    `${name}.service is not installed: there is no ${file}`,
    `install it with ${commandLine('service install')}`,
  )
}
