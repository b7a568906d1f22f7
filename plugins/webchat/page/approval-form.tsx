import type { RefObject } from 'preact'
import { escapeHidden } from './approval-text.ts'
import type { Approval, FormField } from './wire.ts'

export type FormAnswers = Readonly<Record<string, string | boolean | readonly string[]>>

interface ApprovalFormProps {
  readonly form: NonNullable<Approval['form']>
  readonly id: string
  readonly formRef: RefObject<HTMLFormElement | null>
}

/** What a person is asked to fill in before they approve. The daemon reads text as what the field is. */
export function ApprovalForm({ form, id, formRef }: ApprovalFormProps) {
  return (
    <form
      ref={formRef}
      class="approval-form"
      aria-label={escapeHidden(form.title ?? 'To fill in')}
      onSubmit={(event) => event.preventDefault()}
    >
      {form.fields.map((field) => (
        <Field key={field.name} field={field} id={`${id}-${field.name}`} />
      ))}
    </form>
  )
}

interface FieldProps {
  readonly field: FormField
  readonly id: string
}
function Field({ field, id }: FieldProps) {
  const label = `${escapeHidden(field.title)}${field.required ? '' : ' (may be left out)'}`
  const hint = field.description === '' ? undefined : <p class="hint">{escapeHidden(field.description)}</p>
  if (field.kind === 'choices')
    return (
      <fieldset>
        <legend>{label}</legend>
        {hint}
        {field.options.map(({ value, title }) => (
          <label key={value} class="check">
            <input type="checkbox" name={field.name} value={value} defaultChecked={isChosen(field, value)} />
            {escapeHidden(title)}
          </label>
        ))}
      </fieldset>
    )
  if (field.kind === 'boolean')
    return (
      <>
        <label class="check" for={id}>
          <input id={id} type="checkbox" name={field.name} defaultChecked={field.default === true} />
          {escapeHidden(field.title)}
        </label>
        {hint}
      </>
    )
  return (
    <>
      <label for={id}>{label}</label>
      {hint}
      {field.kind === 'choice' ? <Choice field={field} id={id} /> : <Line field={field} id={id} />}
    </>
  )
}

const isChosen = ({ default: chosen }: FormField, value: string): boolean =>
  Array.isArray(chosen) ? chosen.includes(value) : chosen === value

function Choice({ field, id }: FieldProps) {
  return (
    <select id={id} name={field.name} required={field.required}>
      {field.default === undefined && <option value="">…</option>}
      {field.options.map(({ value, title }) => (
        <option key={value} value={value} selected={isChosen(field, value)}>
          {escapeHidden(title)}
        </option>
      ))}
    </select>
  )
}

function Line({ field, id }: FieldProps) {
  const { name, required, minimum, maximum, default: value, format = '' } = field
  const common = { id, name, required, defaultValue: value === undefined ? '' : String(value) }
  if (format === 'email') return <input {...common} type="email" />
  if (format === 'uri') return <input {...common} type="url" />
  if (format === 'date') return <input {...common} type="date" />
  return field.kind === 'number' || field.kind === 'integer' ? (
    <input
      {...common}
      type="number"
      step={field.kind === 'integer' ? 1 : 'any'}
      {...(minimum === undefined ? {} : { min: minimum })}
      {...(maximum === undefined ? {} : { max: maximum })}
    />
  ) : (
    <input
      {...common}
      type="text"
      {...(minimum === undefined ? {} : { minLength: minimum })}
      {...(maximum === undefined ? {} : { maxLength: maximum })}
    />
  )
}

/** The answers by field; a field that is empty is left out, which gives it its default. */
export function readAnswers(form: HTMLFormElement): FormAnswers {
  const answers: Record<string, string | boolean | string[]> = {}
  for (const element of form.querySelectorAll<HTMLInputElement | HTMLSelectElement>('input, select')) {
    const { name, value } = element
    const isCheckbox = element instanceof HTMLInputElement && element.type === 'checkbox'
    if (isCheckbox && element.closest('fieldset')) {
      const chosen = answers[name]
      answers[name] = [...(Array.isArray(chosen) ? chosen : []), ...(element.checked ? [value] : [])]
    } else if (isCheckbox) answers[name] = element.checked
    else if (value !== '') answers[name] = value
  }
  return answers
}
