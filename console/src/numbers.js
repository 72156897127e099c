// Numbers with as many digits as their error leaves meaning to: two of the error's.
export function shown(value, error) {
  if (value == null || Number.isNaN(value)) return "unclear";
  if (!(error > 0) || !Number.isFinite(error)) return Number(value.toPrecision(10)).toLocaleString("en");
  const digits = Math.min(Math.max(1 - Math.floor(Math.log10(error)), 0), 9);
  const text = value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return /^-[0.,]+$/.test(text) ? text.slice(1) : text;
}

export const interval = (low, high, error) => (low == null || high == null ? "" : `${shown(low, error)} to ${shown(high, error)}`);
export const count = (value) => Number(value).toLocaleString("en");
export const bytes = (value) => (value >= 2 ** 30 ? `${(value / 2 ** 30).toFixed(1)} GiB` : `${Math.round(value / 2 ** 20)} MiB`);
