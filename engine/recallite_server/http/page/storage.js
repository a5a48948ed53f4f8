// What a person chose, kept in this browser where it allows that; else for as long as the page is open.

const chosen = new Map();

export function kept(name) {
  try {
    return localStorage.getItem(`recallite-${name}`) ?? chosen.get(name) ?? null;
  } catch {
    return chosen.get(name) ?? null;
  }
}

export function keep(name, value) {
  chosen.set(name, value);
  try {
    localStorage.setItem(`recallite-${name}`, value);
  } catch {
    // Storage is blocked.
  }
}
