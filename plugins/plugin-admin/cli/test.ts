import { commandLine, defineCommand, exits, Failure, homeArgs, runNodeTests } from 'svc/cli'
import { testFiles } from '../inspect/test-files.ts'
import { findFolder } from './folder.ts'

export default defineCommand({
  description:
    'Run the tests of a plugin, those in *.test.ts, with the test runner of Node. They import svc/testing from this ' +
    'installation: nothing has to be installed, and no daemon is needed.',
  args: {
    plugin: { type: 'positional', required: false, default: '.', description: 'Folder, or name in <home>/plugins' },
    watch: { type: 'boolean', description: 'Run them again whenever a file is saved' },
    home: homeArgs.home,
  },
  examples: [
    ['svc plugin test weather', 'the tests of <home>/plugins/weather'],
    ['svc plugin test . --watch', 'those of this folder, again after each change'],
  ],
  async run(args) {
    const folder = findFolder(args.plugin, args.home)
    const files = testFiles(folder)
    if (files.length === 0)
      throw new Failure(
        exits.notFound,
        `${folder} has no tests`,
        `write one on svc/testing, such as the index.test.ts that ${commandLine('plugin new <name>')} makes`,
      )
    return (await runNodeTests(folder, files, args.watch)) === 0 ? exits.ok : exits.failed
  },
})
