import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, note, print, printJson } from 'svc/cli'
import { renderSkills, SkillList } from './client.ts'

export default defineCommand({
  description: 'List the skills, and the folders that are no usable skill.',
  args: { ...clientArgs },
  examples: [['svc skill list', 'every skill']],
  async run(args) {
    const answer = await callDaemon(await connect(args), (client) => client.call('GET', '/api/skills', SkillList))
    if (args.json) printJson(answer)
    else {
      print(answer.skills.length === 0 ? 'There are no skills.' : renderSkills(answer.skills))
      for (const { path, error } of answer.problems)
        note(`svc: warning: not usable: ${escapeControls(`${path}: ${error}`)}`)
    }
    return exits.ok
  },
})
