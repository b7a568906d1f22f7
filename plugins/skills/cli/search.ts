import { callDaemon, clientArgs, connect, defineCommand, exits, print, printJson } from 'svc/cli'
import { renderSkills, SkillList } from './client.ts'

export default defineCommand({
  description: 'Find skills whose name, description or tags hold all the words.',
  args: {
    words: { type: 'positional', required: true, description: 'Words, in quotes when there are several' },
    ...clientArgs,
  },
  examples: [["svc skill search 'release notes'", 'skills for release notes']],
  async run(args) {
    const { skills } = await callDaemon(await connect(args), (client) => client.call('GET', '/api/skills', SkillList))
    const words = args.words.toLowerCase().split(/\s+/).filter(Boolean)
    const found = skills.filter(({ name, description, tags }) => {
      const text = [name, description, ...tags].join('\n').toLowerCase()
      return words.every((word) => text.includes(word))
    })
    if (args.json) printJson({ skills: found, total: found.length })
    else print(found.length === 0 ? 'No skill has all these words.' : renderSkills(found))
    return exits.ok
  },
})
