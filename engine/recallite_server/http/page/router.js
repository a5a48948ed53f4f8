// Addresses of views: #/memory/ID?x=y. The browser's history is that of the page.

export function parse(hash) {
  const [path, search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { name: parts[0] || "search", id: parts[1] ?? "", query: new URLSearchParams(search) };
}

export function link(name, id = "", query = {}) {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== "" && each !== null && each !== undefined && each !== false)
        search.append(key, each === true ? "1" : each);
    }
  }
  const told = search.toString();
  return `#/${name}${id ? `/${encodeURIComponent(id)}` : ""}${told ? `?${told}` : ""}`;
}

export const toMemory = (id) => link("memory", id);

export function go(hash) {
  location.hash = hash;
}

// The address of what is shown now, without a new entry in the history.
export function note(hash) {
  if (location.hash !== hash) history.replaceState(history.state, "", hash);
}
