import * as v from 'valibot'
import { callDaemon, clientArgs, connect, defineCommand, escapeControls, exits, print, printJson } from 'svc/cli'

const Answer = v.looseObject({
  passed: v.number(),
  failed: v.number(),
  results: v.array(v.looseObject({ name: v.string(), passed: v.boolean(), message: v.string() })),
})
const TIMEOUT_MS = 600_000

export default defineCommand({
  description: 'Run the tests in skill.test.json of a skill.',
  args: { name: { type: 'positional', required: true, description: 'Name of the skill' }, ...clientArgs },
  examples: [['svc skill test release-notes', 'its tests']],
  async run(args) {
    const path = `/api/skills/${encodeURIComponent(args.name)}/test`
    const answer = await callDaemon(await connect(args), (client) =>
      client.call('POST', path, Answer, { timeoutMs: TIMEOUT_MS }),
    )
    if (args.json) printJson(answer)
    else {
      for (const { name, passed, message } of answer.results)
        print(escapeControls(passed ? `ok ${name}` : `failed ${name}: ${message}`, true))
      print(`${answer.passed} passed, ${answer.failed} failed`)
    }
    return answer.failed === 0 ? exits.ok : exits.failed
  },
})
