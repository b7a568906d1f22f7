import { element, facts, table } from '../../kit/kit.js'
import { addCopyButton } from './copy.js'
import { constraintsOf, resolve, schemaView, typeOf } from './schema.js'
import { tryForm } from './try.js'

const EFFECTS = {
  read: 'it only reads',
  conversation: 'it continues a conversation',
  own: 'it changes what belongs to the caller',
  lasting: 'it changes the daemon; paired devices and people who signed in cannot do it',
}

/** A closed row for a route. What is in it is drawn when it is opened for the first time. */
export function operationView(route) {
  const { method, path, operation } = route
  const view = element(
    'details',
    { id: operation.operationId, className: 'route' },
    element(
      'summary',
      {},
      element('span', { className: `badge method ${method}` }, method.toUpperCase()),
      element('code', {}, path),
      element('span', { className: 'hint' }, operation.summary),
    ),
  )
  view.addEventListener('toggle', () => {
    if (view.open && view.children.length === 1) view.append(content(route))
  })
  view.firstChild.addEventListener('click', () => {
    history.replaceState(undefined, '', `#${encodeURIComponent(operation.operationId)}`)
  })
  return view
}

function content({ method, path, operation, api }) {
  const { description, parameters = [], requestBody, responses, security = [] } = operation
  const answers = Object.entries(responses)
  const isFailure = ([status]) => Number(status) >= 400
  return element(
    'div',
    { className: 'stack' },
    description && element('p', {}, description),
    element(
      'dl',
      {},
      facts([
        ['Key', security.length > 0 ? 'needed, as “Authorization: Bearer …” or “X-API-Key: …”' : 'not needed'],
        ['Effect', EFFECTS[operation['x-effect']] ?? operation['x-effect']],
        ['Cost', `${operation['x-cost']} of the tokens of a minute`],
      ]),
    ),
    parameters.length > 0 && [element('h3', {}, 'Parameters'), parameterTable(parameters, api)],
    requestBody && [
      element('h3', {}, requestBody.required ? 'Body' : 'Body, which may be left out'),
      contentView(requestBody.content, api),
    ],
    element('h3', {}, 'Answers'),
    answers
      .filter((answer) => !isFailure(answer))
      .map(([status, answer]) => [
        element('p', {}, element('span', { className: 'badge good' }, status), ` ${answer.description}`),
        contentView(answer.content ?? {}, api),
      ]),
    element('h3', {}, 'Errors'),
    table({
      caption: 'Errors',
      columns: [
        { title: 'Status', cell: ([status]) => status },
        { title: 'Code', cell: ([, answer]) => answer.description },
      ],
      rows: answers.filter(isFailure),
      empty: 'None.',
    }),
    tryForm({ method, path, operation, api }),
  )
}

function parameterTable(parameters, api) {
  return table({
    caption: 'Parameters',
    columns: [
      { title: 'Name', cell: ({ name, required }) => [element('code', {}, name), required && ' (required)'] },
      { title: 'In', cell: (parameter) => parameter.in },
      { title: 'Type', cell: ({ schema }) => typeOf(schema, api) },
      {
        title: 'Meaning',
        cell: ({ description, schema }) =>
          [description ?? resolve(schema, api).description, constraintsOf(resolve(schema, api))]
            .filter(Boolean)
            .join('. '),
      },
    ],
    rows: parameters,
  })
}

/** Each media type with its schema and an example. */
function contentView(types, api) {
  return Object.entries(types).map(([type, { schema = {}, example, 'x-event': event }]) => [
    element('p', { className: 'hint' }, element('code', {}, type), event && ', the data of each event:'),
    schemaView(event ?? schema, api),
    example !== undefined && exampleView(example),
  ])
}

function exampleView(example) {
  const block = element('pre', { tabindex: '0' }, element('code', {}, JSON.stringify(example, undefined, 2)))
  const view = element('details', {}, element('summary', {}, 'Example'), block)
  addCopyButton(block)
  return view
}
