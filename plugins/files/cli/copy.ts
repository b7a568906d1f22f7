import { resolve } from 'node:path'
import * as v from 'valibot'
import {
  commandLine,
  defineCommand,
  escapeControls,
  exits,
  Failure,
  homeArgs,
  locateHome,
  note,
  print,
  printJson,
  writeOffline,
} from 'svc/cli'

const Report = v.object({
  from: v.string(),
  to: v.string(),
  problem: v.optional(v.string()),
  advice: v.optional(v.string()),
  agents: v.number(),
  files: v.number(),
  bytes: v.number(),
  same: v.number(),
  other: v.number(),
  extra: v.number(),
  left_out: v.array(v.object({ agent: v.string(), name: v.string(), why: v.string() })),
})
const Names = v.array(v.string())

export default defineCommand({
  description:
    'Copy the files of all agents, uploads among them, from where plugins.files.mount has them to a folder, the ' +
    'database or the bucket, while no daemon runs. Each file is read again and compared. A copy that was cut off goes on ' +
    'with what is missing. What was copied stays where it is; only between the database and the bucket contents move.',
  args: {
    target: { type: 'positional', required: true, description: 'folder, database or s3' },
    path: {
      type: 'string',
      valueHint: 'folder',
      description: 'The folder (default: plugins.files.path, else data/workspaces)',
    },
    'dry-run': { type: 'boolean', description: 'Count files and bytes, and write nothing' },
    replace: {
      type: 'boolean',
      description: 'Replace files that have another content there, and remove those that are there only',
    },
    ...homeArgs,
  },
  examples: [
    ['svc files copy s3 --dry-run', 'how many files, and how large'],
    ['svc files copy folder --path /mnt/svc', 'back from the database or the bucket'],
  ],
  async run(args) {
    const { target } = args
    if (target !== 'folder' && target !== 'database' && target !== 's3')
      throw new Failure(exits.usage, `"${target}" is no place for files`, 'name folder, database or s3')
    const isDry = args['dry-run'] === true
    const report = await writeOffline(locateHome(args), ['agents', 'cluster', 'files'], async (work) => {
      const refuseAlive = async (advice: string): Promise<void> => {
        const alive = v.parse(Names, await work('cluster', 'alive'))
        if (alive.length > 0) throw new Failure(exits.inUse, `on the database is ${alive.join(', ')}`, advice)
      }
      if (!isDry) await refuseAlive('nothing was copied; stop all daemons first')
      const copied = v.parse(
        Report,
        await work('files', 'copy', {
          target,
          agents: JSON.stringify(await work('agents', 'ids')),
          path: args.path === undefined ? undefined : resolve(args.path),
          dry_run: isDry,
          replace: args.replace === true,
        }),
      )
      if (!isDry) await refuseAlive('it began meanwhile and may have changed files: stop it, and copy again')
      return copied
    })
    const { from, to, problem, advice, agents, files, bytes, same, other, extra, left_out: leftOut } = report
    if (problem !== undefined) throw new Failure(exits.refused, escapeControls(problem), advice)
    if (args.json) {
      printJson({ ...report, dry_run: isDry })
      return exits.ok
    }
    print(
      `${files} files of ${agents} agents, ${bytes} bytes, ${isDry ? 'would be' : 'were'} copied from ${from} to ${to}, ` +
        `which ${isDry ? 'has' : 'had'} ${same} already.`,
    )
    if (other + extra > 0)
      print(
        `${to} ${isDry ? 'has' : 'had'} ${other} files with another content and ${extra} more that are not here` +
          (isDry ? ': --replace makes them as they are here.' : ', which were replaced and removed.'),
      )
    for (const { agent, name, why } of leftOut)
      note(escapeControls(`svc: file "${name}" of agent ${agent} is left out: ${why}`))
    if (isDry) return exits.ok
    const path =
      args.path === undefined ? '' : `, ${commandLine(`config set plugins.files.path ${resolve(args.path)}`)}`
    print(`Now: ${commandLine(`config set plugins.files.mount ${target}`)}${path}, then ${commandLine('start')}.`)
    return exits.ok
  },
})
