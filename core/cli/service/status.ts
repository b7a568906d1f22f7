import { defineCommand } from '../command.ts'
import { exits } from '../failure.ts'
import { print, printJson, renderFacts } from '../output.ts'
import { notInstalled, readInstalledUnit } from './remove.ts'
import { serviceArgs, unitFile, unitName } from './unit.ts'
import { readUnitState, requireSystemd } from './systemctl.ts'

export default defineCommand({
  description: 'Show whether systemd starts the daemon and whether it runs. The exit code is 0 only when it does.',
  args: { ...serviceArgs, json: { type: 'boolean', description: 'Print JSON' } },
  examples: [['svc service status', 'is it enabled, does it run']],
  async run(args) {
    const name = unitName(args.name)
    const file = unitFile(name)
    if (readInstalledUnit(file) === undefined) throw notInstalled(name, file)
    await requireSystemd()
    const { active, enabled, result, pid } = await readUnitState(name)
    if (args.json) printJson({ name, unit_file: file, active, enabled, result, pid: pid ?? null })
    else
      print(
        renderFacts([
          ['unit', file],
          ['state', active === 'failed' ? `failed (${result})` : active],
          ['at login', enabled],
          ['process', pid === undefined ? 'none' : String(pid)],
          ['log', `journalctl --user -u ${name}`],
        ]),
      )
    return active === 'active' ? exits.ok : exits.notRunning
  },
})
