import { element } from '../../kit/kit.js'
import { isProblem, stateBadge } from './state.js'

const COLLATOR = new Intl.Collator(undefined, { sensitivity: 'base' })

/** The channels in groups, those that are not available yet at the end, and how many there are. */
export function channelList(rows, { text, which, chosen }) {
  const words = text.trim().toLowerCase()
  const shown = rows
    .filter((row) => isChosen(row, which) && matches(row, words))
    .toSorted((one, other) => COLLATOR.compare(one.display_name, other.display_name))
  const group = (title, members) =>
    members.length === 0
      ? []
      : [
          element('h2', {}, title),
          element(
            'ul',
            { 'aria-label': title },
            members.map((row) => item(row, chosen)),
          ),
        ]
  const problems = rows.filter(({ configured, state }) => configured && isProblem(state)).length
  return {
    count: `${shown.length} of ${rows.length}${problems > 0 ? `, ${problems} with a problem` : ''}`,
    groups: [
      ...group(
        'Configured',
        shown.filter(({ configured }) => configured),
      ),
      ...group(
        'Available',
        shown.filter(({ configured, available }) => !configured && available),
      ),
      ...group(
        'Not available yet',
        shown.filter(({ configured, available }) => !configured && !available),
      ),
    ],
  }
}

function isChosen({ configured, state }, which) {
  if (which === 'configured') return configured
  return which !== 'attention' || (configured && isProblem(state))
}

function matches({ name, display_name: title, description, category }, words) {
  return [name, title, description, category].some((text) => text.toLowerCase().includes(words))
}

function item({ name, display_name: title, description, available, configured, state, accounts, icon }, chosen) {
  const isCurrent = name === chosen
  const count = accounts > 1 ? `${accounts} accounts` : undefined
  return element(
    'li',
    {},
    element(
      'a',
      {
        href: `#${encodeURIComponent(name)}`,
        className: `channel${available || configured ? '' : ' unavailable'}`,
        'data-focus': `channel ${name}`,
        'aria-current': isCurrent && 'true',
      },
      element('span', { className: 'icon', 'aria-hidden': 'true' }, icon),
      element(
        'span',
        { className: 'channel-text' },
        element('strong', {}, title),
        element('span', { className: 'hint' }, count ?? description),
      ),
      configured && stateBadge(state, available),
    ),
  )
}
