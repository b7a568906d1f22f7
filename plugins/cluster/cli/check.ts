import { commandLine, passed, warned } from 'svc/cli'
import type { Check } from 'svc/cli'
import { Cluster } from './member.ts'

/** Whether the daemons on the database are configured alike. */
const check: Check = async ({ daemon }) => {
  if (!daemon) return passed('known while the daemon runs')
  const { shared, members } = await daemon.call('GET', '/api/cluster', Cluster)
  if (!shared) return passed('the only daemon on its database')
  const problems = members.flatMap((member) => member.problems.map((problem) => `${member.name}: ${problem}`))
  const different = members
    .filter(({ differences }) => differences.length > 0)
    .map(({ name, differences }) => `${name} differs in ${differences.join(', ')}`)
  const names = members.map(({ name }) => name)
  const namesakes = [...new Set(names.filter((name, at) => names.indexOf(name) !== at))]
  const versions = [...new Set(members.map(({ version }) => version))]
  const advice = [
    ...(problems.length > 0 ? ['repair the cause there, and restart that daemon or install the plugin again'] : []),
    ...(different.length > 0
      ? [`give every daemon the same configuration and plugins; ${commandLine('cluster status')} compares them`]
      : []),
  ]
  if (namesakes.length > 0) advice.push('give each daemon a name of its own: plugins.cluster.name')
  const alike = namesakes.map((name) => `${names.filter((each) => each === name).length} daemons are called "${name}"`)
  if (advice.length > 0) return warned([...problems, ...different, ...alike].join('; '), advice.join('; '))
  if (versions.length > 1)
    return warned(`${members.length} daemons of the versions ${versions.join(' and ')}`, 'upgrade the others as well')
  return passed(`${members.length} daemons, configured alike`)
}
export default check
