import { byId, call, element, facts, livePage, replace, time } from '../../kit/kit.js'

const POLL_MS = 30_000

const refresh = livePage({
  content: [byId('summary'), byId('systems')],
  submit: 'Show the systems',
  waiting: 'Each system is being tried …',
  async load() {
    const {
      security_systems: systems,
      probes,
      all_active: isWhole,
      total_systems: total,
    } = await call('GET', '/api/security')
    replace(
      byId('summary'),
      isWhole
        ? `All ${total} systems refuse what they should: each is tried with hostile input now and then.`
        : 'At least one system let through what it should refuse. What it let through stands below.',
    )
    replace(
      byId('systems'),
      Object.entries(systems)
        .toSorted(([, one], [, other]) => Number(one === 'active') - Number(other === 'active'))
        .map(([name, status]) => card(name, status, probes[name])),
    )
  },
  words: ['security', 'blocked'],
  everyMs: POLL_MS,
})

function card(name, status, probe) {
  const title = name.replaceAll('_', ' ')
  const {
    failures = [],
    cases,
    evidence,
    enforcement_count: blocked,
    last_blocked_at: last,
    checked_at: checked,
  } = probe ?? {}
  return element(
    'section',
    { className: 'card', 'aria-label': title },
    element(
      'div',
      { className: 'card-top' },
      element('h2', {}, title),
      element('span', { className: `badge ${status === 'active' ? 'good' : 'bad'}` }, status),
    ),
    evidence && element('p', { className: 'hint' }, evidence),
    failures.map((failure) => element('p', { className: 'problem' }, String(failure))),
    probe &&
      element(
        'dl',
        {},
        ...facts([
          ['tried', `${cases} cases`],
          ['at', time(checked)],
          ['has refused', blocked > 0 && String(blocked)],
          ['last at', last && time(last)],
        ]),
      ),
  )
}

void refresh()
