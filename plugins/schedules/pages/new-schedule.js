import { call, element, openDialog, time } from '../../kit/kit.js'

/** Asks what an agent is to be asked and when; `finish` is told what was made. */
export function askForSchedule(agents, finish) {
  const agent = element(
    'select',
    {},
    agents.map(({ id, name }) => element('option', { value: id }, name)),
  )
  const when = element('input', { autocomplete: 'off', spellcheck: 'false', placeholder: 'weekdays at 9:30' })
  const zone = element('input', { autocomplete: 'off', spellcheck: 'false', value: zoneHere() })
  const prompt = element('textarea', { rows: '3' })
  openDialog({
    title: 'New schedule',
    content: [
      field('Agent', agent),
      field('When', when, 'Such as “every 10 minutes”, “mondays and fridays at 9:15 am”, or a cron expression.'),
      field('Time zone', zone),
      field('What it is asked', prompt),
    ],
    confirm: 'Create',
    async submit() {
      const made = await call('POST', '/api/schedules', {
        agent_id: agent.value,
        phrase: when.value.trim(),
        tz: zone.value.trim(),
        prompt: prompt.value,
      })
      await finish(`“${made.name}” runs ${time(made.next_run).textContent} for the first time.`)
    },
  })
}

const zoneHere = () => Intl.DateTimeFormat().resolvedOptions().timeZone
const field = (label, input, hint) =>
  element('label', { className: 'field' }, label, input, hint && element('span', { className: 'hint' }, hint))
